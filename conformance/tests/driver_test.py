"""Whatever a driver does with the protocol is noticed, and said."""

import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from runner import driver as driver_module
from runner.driver import Driver, DriverFault, Refusal
from tests.support import fake_command

PATIENCE_S = 0.4
FAULTS = {
    "crash-at-create": "ended with signal SIGKILL",
    "exit-at-create": "ended with exit code 3",
    "hang-at-create": "gave no answer to create (id 2) in time",
    "garbage-at-create": "printed a line that is not JSON: b'Traceback",
    "no-object-at-create": "printed a line that is no answer",
    "no-document-at-create": "printed a line that is no answer",
    "both-at-create": "printed a line that is no answer",
    "unknown-code-at-create": "'OOPS' is not one of",
    "wrong-id-at-create": "answered id 1002, which no open request has",
    "unfinished-at-create": "a line without an end",
    "closes-output-at-create": "closed its standard output",
}


class Conversation(unittest.TestCase):
    def setUp(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)

    def start(self, *faults: str) -> Driver:
        log = Path(self._directory.name) / "log"
        environment = {"XDG_STATE_HOME": self._directory.name}
        driver = Driver(fake_command(*faults), environment, log)
        self.addCleanup(driver.kill)
        return driver

    def ask(self, driver: Driver, op: str, seconds: float = 5.0, **fields: object) -> dict:
        return driver.ask(op, dict(fields), time.monotonic() + seconds)

    def test_answers_arrive(self) -> None:
        driver = self.start()
        self.assertEqual(self.ask(driver, "hello")["name"], "fake")
        self.assertRegex(self.ask(driver, "create", options={})["sandbox"], "^sbx_")
        driver.shut_down(time.monotonic() + 5)

    def test_every_fault_is_told(self) -> None:
        for fault, told in FAULTS.items():
            with self.subTest(fault=fault):
                driver = self.start(fault)
                self.ask(driver, "hello")
                patience = PATIENCE_S if fault.startswith("hang") else 5.0
                with self.assertRaises(DriverFault) as caught:
                    self.ask(driver, "create", patience, options={})
                self.assertIn(told, str(caught.exception))

    def test_a_fault_is_final(self) -> None:
        driver = self.start("crash-at-create")
        for _ in range(2):
            with self.assertRaisesRegex(DriverFault, "SIGKILL"):
                self.ask(driver, "create", options={})
        with self.assertRaisesRegex(DriverFault, "SIGKILL"):
            self.ask(driver, "hello")

    def test_a_second_answer_to_one_request(self) -> None:
        driver = self.start("twice-at-create")
        self.ask(driver, "create", options={})
        with self.assertRaisesRegex(DriverFault, "answered id 1, which no open request has"):
            self.ask(driver, "exec", sandbox="sbx_1", options={}, args=["sleep"])
            self.ask(driver, "wait", execution="exec_1")

    def test_documents_are_held_to_their_schemas(self) -> None:
        for fault, told in {
            "invalid-result": "'running' is not one of",
            "no-metadata": "'metadata' is a required property",
            "bad-base64": "result.stdout: 'A' does not match",
        }.items():
            with self.subTest(fault=fault):
                driver = self.start(fault)
                execution = self.ask(
                    driver, "exec", sandbox="sbx_1", options={}, args=["exit", "0"]
                )["execution"]
                with self.assertRaises(DriverFault) as caught:
                    self.ask(driver, "wait", execution=execution)
                self.assertIn(told, str(caught.exception))

    def test_an_introduction_without_a_version(self) -> None:
        with self.assertRaisesRegex(DriverFault, "'version' is a required property"):
            self.ask(self.start("no-version"), "hello")

    def test_an_error_document_is_no_fault(self) -> None:
        driver = self.start("error-at-create")
        with self.assertRaises(Refusal) as caught:
            self.ask(driver, "create", options={})
        self.assertEqual(caught.exception.document["code"], "UNSUPPORTED")
        driver.shut_down(time.monotonic() + 5)

    def test_a_line_that_never_ends(self) -> None:
        with mock.patch.object(driver_module, "LONGEST_LINE", 65536):
            driver = self.start("long-line-at-create")
            with self.assertRaisesRegex(DriverFault, "a line of more than 65536 bytes"):
                self.ask(driver, "create", options={})

    def test_a_driver_that_reads_no_more(self) -> None:
        driver = self.start("deaf")
        self.ask(driver, "hello")
        with self.assertRaisesRegex(DriverFault, "did not take the request write in time"):
            self.ask(driver, "write", PATIENCE_S, sandbox="sbx_1", path="f", bytes="A" * (1 << 20))

    def test_a_driver_that_does_not_exist(self) -> None:
        with self.assertRaisesRegex(DriverFault, "cannot be started: .*No such file"):
            Driver(["/nowhere/driver"], {}, Path(self._directory.name) / "log")

    def test_leaving(self) -> None:
        for fault, told in {
            "exit-code-after-shutdown": "ended with exit code 4 after shutdown",
            "hang-after-shutdown": "did not exit after shutdown",
            "hang-at-shutdown": "gave no answer to shutdown",
            "crash-at-shutdown": "ended with signal SIGKILL",
        }.items():
            with self.subTest(fault=fault):
                driver = self.start(fault)
                self.ask(driver, "hello")
                with self.assertRaisesRegex(DriverFault, told):
                    driver.shut_down(time.monotonic() + PATIENCE_S + ("exit" in fault))

    def test_answers_in_any_order(self) -> None:
        driver = self.start()
        sleeping = self.ask(driver, "exec", sandbox="sbx_1", options={}, args=["sleep"])[
            "execution"
        ]
        first = driver._send("wait", {"execution": sleeping}, time.monotonic() + 5)
        self.ask(driver, "cancel", execution=sleeping)
        answer = driver._receive(first, "wait", time.monotonic() + 5)
        self.assertEqual(answer["ok"]["result"]["status"], "cancelled")


if __name__ == "__main__":
    unittest.main()
