"""The whole runner as a program, against drivers that do their worst."""

import ctypes
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

from runner import processes
from runner.paths import ENTRY
from tests.support import GOOD_STEP, case_text, fake_command, rules_text

LONGEST_S = 40


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name)
        self.write(GOOD_STEP)

    def write(self, body: str, names: tuple[str, ...] = ("the-case",), seconds: int = 2) -> None:
        for kind in ("cases", "rules"):
            (self.top / kind).mkdir(exist_ok=True)
        texts = [case_text(body, name, seconds) for name in names]
        (self.top / "cases/exec.toml").write_text("\n".join(texts))
        (self.top / "rules/exec.toml").write_text(rules_text(*names))

    def words(self, *faults: str, more: tuple[str, ...] = ()) -> list[str]:
        driver = shlex.join(fake_command(*faults))
        places = ["--cases", str(self.top / "cases"), "--rules", str(self.top / "rules")]
        return [sys.executable, str(ENTRY), "run", "--driver", driver, *places, *more]

    def run_kit(self, *faults: str, more: tuple[str, ...] = ()) -> tuple[int, str]:
        done = subprocess.run(
            self.words(*faults, more=more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        return done.returncode, done.stdout

    def running(self) -> list[processes.Process]:
        """Everything that this test has started carries its directory on the command line."""
        return processes.with_text(str(self.top))

    def assert_nothing_runs(self) -> None:
        until = time.monotonic() + 5
        while self.running() and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(list(map(str, self.running())), [])

    def test_success(self) -> None:
        reports = {form: self.top / form for form in ("json", "junit", "markdown")}
        more = tuple(word for form, path in reports.items() for word in (f"--{form}", str(path)))
        status, said = self.run_kit(more=more)
        self.assertEqual(
            (status, said.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"), said
        )
        self.assertIn("verdict: conforms (", said)
        self.assertEqual(json.loads(reports["json"].read_text())["counts"]["passed"], 1)
        self.assertEqual(ElementTree.parse(reports["junit"]).getroot().get("tests"), "1")
        self.assertIn("# Conformance of fake", reports["markdown"].read_text())

    def test_one_line_for_each_failure_with_the_command_that_repeats_it(self) -> None:
        self.write(GOOD_STEP, ("case-one", "case-two"))
        status, said = self.run_kit("wrong-output")
        self.assertEqual(status, 1)
        lines = [line for line in said.splitlines() if line.startswith("FAIL ")]
        self.assertEqual(len(lines), 2, said)
        line = next(line for line in lines if "case-two" in line)
        for part in ("[EXEC-001]", 'expected "hello"', "observed 'HELLO'"):
            self.assertIn(part, line)
        again = subprocess.run(
            line.split("; alone: ")[1], shell=True, capture_output=True, text=True, check=False
        )
        self.assertEqual(again.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped", again)

    def test_a_driver_without_isolation_is_refused(self) -> None:
        status, said = self.run_kit("no-isolation")
        self.assertEqual(status, 2)
        self.assertIn("fake reports neither osFilesystemIsolation", said)
        self.assertNotIn("passed", said)

    def test_a_driver_that_cannot_introduce_itself(self) -> None:
        status, said = self.run_kit("crash-at-hello")
        self.assertEqual(status, 2)
        self.assertIn(
            "the driver ended with signal SIGKILL; it said:\nthe driver is about to crash", said
        )

    def test_capabilities_that_the_profile_wants(self) -> None:
        status, said = self.run_kit("no-private-view")
        self.assertEqual(status, 1)
        self.assertIn("FAIL capability filesystemView", said)
        self.assertIn("verdict: does not conform", said)

    def test_a_feature_that_is_not_excused(self) -> None:
        self.write('op = "read"\npath = "f"')
        status, said = self.run_kit("--lacks", "read")
        self.assertEqual(
            (status, said.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), said
        )

    def test_hanging_drivers_are_ended(self) -> None:
        self.write(GOOD_STEP, ("case-one", "case-two", "case-three"), seconds=1)
        began = time.monotonic()
        status, said = self.run_kit("--state", str(self.top / "x"), "hang-at-exec")
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(
            (status, said.splitlines()[-1]), (1, "0 passed, 3 failed, 0 skipped"), said
        )
        self.assert_nothing_runs()

    def test_patience_is_how_long_a_hanging_driver_is_waited_for(self) -> None:
        self.write(GOOD_STEP, seconds=1)
        began = time.monotonic()
        status, said = self.run_kit(
            "--state", str(self.top / "x"), "hang-at-exec", more=("--patience", "4")
        )
        self.assertGreaterEqual(time.monotonic() - began, 4)
        self.assertRegex(said, "alone: .* --patience 4 ")
        self.assertEqual(
            (status, said.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), said
        )
        status, said = self.run_kit(more=("--patience", "0"))
        self.assertEqual(status, 2, said)

    def test_leftovers_of_the_whole_host(self) -> None:
        shared = self.top / "shared"
        shared.mkdir()
        self.write(GOOD_STEP, ("case-one", "case-two"))
        faults = ("--watch", str(shared), "leaves-shared-file", "leaves-shared-memory")
        status, said = self.run_kit(*faults, more=("--jobs", "2"))
        memory = set(re.findall(r"System V shm (\d+) ", said))
        for identifier in memory:
            ctypes.CDLL(None).shmctl(int(identifier), 0, None)
        self.assertEqual((status, len(memory)), (1, 2), said)
        self.assertIn(
            f"leftovers: on the host: expected nothing, observed file {shared}/forgotten", said
        )

    def test_what_cases_may_share_is_looked_at_and_goes_with_the_run(self) -> None:
        self.write(GOOD_STEP, ("case-one", "case-two"))
        status, said = self.run_kit("leaves-runtime-file", more=("--jobs", "1"))
        left = re.search(r"leftovers: on the host: .* observed file (\S+)/forgotten", said)
        self.assertTrue(status == 1 and left, said)
        self.assertFalse(Path(left[1]).exists())

    def test_interruption(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                self.interrupt(number)

    def interrupt(self, number: int) -> None:
        self.write(GOOD_STEP, ("case-one", "case-two"), seconds=60)
        report, state = self.top / "report.json", self.top / "starts"
        words = self.words(
            "--state", str(state), "hang-at-exec", more=("--jobs", "1", "--json", str(report))
        )
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # What a shell starts in the background ignores SIGINT, and so would this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.wait_for(lambda: len(self.running()) >= 2 and self.hanging())
        began = time.monotonic()
        process.send_signal(number)
        said, _ = process.communicate(timeout=LONGEST_S)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual(process.returncode, 130, said)
        self.assertNotIn("Traceback", said)
        self.assertIn("0 passed, 0 failed, 0 skipped, 2 interrupted or not begun", said)
        self.assertEqual(json.loads(report.read_text())["counts"]["interrupted"], 2)
        self.assert_nothing_runs()

    def hanging(self) -> bool:
        """A case has begun: its driver runs below a worker."""
        drivers = [p for p in self.running() if "fake_driver.py" in processes.command_line(p.pid)]
        return any("worker" in processes.command_line(p.parent) for p in drivers)

    def wait_for(self, condition) -> None:
        until = time.monotonic() + LONGEST_S
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def start_hanging(self) -> subprocess.Popen:
        self.write(GOOD_STEP, seconds=60)
        words = self.words("--state", str(self.top / "starts"), "hang-at-exec")
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.wait_for(self.hanging)
        return process

    def place_of(self, pid: int) -> Path:
        """The directory of a run, from the environment of a driver in it."""
        below = processes.descendants(pid)
        driver = next(p for p in below if "fake_driver.py" in processes.command_line(p.pid))
        environment = Path(f"/proc/{driver.pid}/environ").read_bytes().split(b"\0")
        home = next(os.fsdecode(line[5:]) for line in environment if line.startswith(b"HOME="))
        place = Path(home).parents[1]
        self.assertTrue(place.name.startswith("palmshed-kit-"))
        return place

    def test_a_runner_that_is_killed_leaves_nothing_running(self) -> None:
        process = self.start_hanging()
        place = self.place_of(process.pid)
        process.kill()
        process.communicate()
        self.assert_nothing_runs()
        self.wait_for(lambda: not place.exists())

    def test_a_worker_that_is_lost_is_no_pass(self) -> None:
        process = self.start_hanging()
        worker = next(p for p in processes.descendants(process.pid) if p.parent == process.pid)
        place = self.place_of(process.pid)
        os.kill(worker.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=LONGEST_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("ERROR the-case [EXEC-001] the kit: the worker", said)
        self.assertFalse(place.exists())
        self.assert_nothing_runs()

    def test_a_line_of_progress_on_a_terminal(self) -> None:
        leader, follower = pty.openpty()
        done = subprocess.run(
            self.words(), stdout=follower, stderr=follower, timeout=LONGEST_S, check=False
        )
        os.close(follower)
        said = os.read(leader, 65536).decode()
        os.close(leader)
        self.assertEqual(done.returncode, 0)
        self.assertIn("\r\x1b[K[1/1] 1 passed, 0 failed  the-case", said)


if __name__ == "__main__":
    unittest.main()
