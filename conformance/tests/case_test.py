"""One case against a driver that misbehaves: each misdeed is a failure of that case."""

import os
import resource
import subprocess
import tempfile
import unittest
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from runner import case_run, processes
from runner.model import Status
from runner.prepared import Prepared
from runner.subreaper import adopt_orphans
from runner.variables import fill
from tests.support import GOOD_STEP, RunnerTest, make_case, setting

NETWORK = """
[case.host]
listeners = [{ name = "tcp", kind = "tcp" }]
[[case.control]]
op = "exec"
on = "host"
args = ["bash", "-c", "read x < /dev/tcp/127.0.0.1/${host.tcp.port}; echo $x"]
expect = { stdout = "tcp\\n" }
[[case.step]]
op = "exec"
args = ["connect", "${host.tcp.port}"]
expect = { probe = [{ attempt = "conn*", result = "denied", errno = ["EPERM", "EACCES"] }] }
[case.after]
hits = { tcp = 0 }
"""
VICTIMS = """
[case.host]
processes = [{ name = "victim" }]
files = [{ name = "canary", content = "secret", mode = "0666" }]
[[case.step]]
op = "exec"
args = ["kill", "${host.victim.pid}"]
expect = { exitCode = 1 }
[[case.step]]
op = "exec"
args = ["overwrite", "${host.canary}"]
expect = { exitCode = 1 }
[case.after]
alive = ["victim"]
files_unchanged = ["canary"]
"""
AFTER = f"""
[case.host]
files = [{{ name = "canary", content = "x" }}]
[[case.step]]
{GOOD_STEP}
[case.after]
"""


class Cases(RunnerTest):
    @classmethod
    def setUpClass(cls) -> None:
        adopt_orphans()

    def setUp(self) -> None:
        for name, seconds in (("GRACE_S", 0.3), ("LEAVING_S", 0.5)):
            patch = mock.patch.object(case_run, name, seconds)
            patch.start()
            self.addCleanup(patch.stop)

    def test_a_good_driver_passes(self) -> None:
        for body in (GOOD_STEP, NETWORK, VICTIMS):
            outcome = self.run_fake(body)
            self.assertEqual(outcome.status, Status.PASSED, outcome.failures)

    def assert_fails(self, body: str, fault: str, *words: str, seconds: int = 5) -> None:
        with self.subTest(fault=fault):
            outcome = self.run_fake(body, fault, seconds=seconds)
            self.assertEqual(outcome.status, Status.FAILED, outcome.failures)
            self.assert_said(outcome, *words)

    def test_wrong_answers(self) -> None:
        self.assert_fails(GOOD_STEP, "wrong-output", "stdout: expected \"hello\", observed 'HELLO'")
        step = 'op = "exec"\nargs = ["exit", "7"]\nexpect = { exitCode = 7, "termination.cause" = "exited" }'
        self.assert_fails(step, "wrong-exit-code", "exitCode: expected 7, observed 0")
        self.assert_fails(
            step, "wrong-cause", 'termination.cause: expected "exited", observed "memory"'
        )

    def test_broken_protocol(self) -> None:
        self.assert_fails(
            GOOD_STEP, "crash-at-wait", "step 1: the driver", "ended with signal SIGKILL"
        )
        self.assert_fails(GOOD_STEP, "hang-at-wait", "gave no answer to wait", seconds=1)
        self.assert_fails(GOOD_STEP, "garbage-at-exec", "is not JSON")
        self.assert_fails(GOOD_STEP, "invalid-result", "breaks its schema")
        self.assert_fails(GOOD_STEP, "crash-at-hello", "start: the driver")
        self.assert_fails(GOOD_STEP, "error-at-destroy", "end: destroy", "not here")
        self.assert_fails(GOOD_STEP, "exit-code-after-shutdown", "end: the driver", "exit code 4")
        self.assert_fails(
            GOOD_STEP, "hang-at-shutdown", "end: the driver", "gave no answer to shutdown"
        )

    def test_what_a_driver_said_is_kept(self) -> None:
        outcome = self.run_fake(GOOD_STEP, "crash-at-exec")
        self.assertIn("about to crash", outcome.stderr)

    def test_broken_walls(self) -> None:
        self.assert_fails(NETWORK, "reaches-listener", "hits of tcp: expected 0, observed 1")
        self.assert_fails(VICTIMS, "kills", "process victim: expected alive")
        self.assert_fails(VICTIMS, "overwrites", "file canary: expected mode 100666")

    def test_variables_are_known_after_the_steps(self) -> None:
        seen = f'{AFTER}present = ["${{host.canary}}"]'
        self.assertEqual(self.run_fake(seen).status, Status.PASSED)
        self.assert_fails(seen.replace("present", "gone"), "", "canary: expected nothing")
        unknown = f'{AFTER}gone = ["${{saved.word}}"]'
        self.assertEqual(self.run_fake(unknown).status, Status.ERROR)
        self.assert_fails(unknown, "wrong-output", "stdout: expected")

    def test_leftovers(self) -> None:
        self.assert_fails(GOOD_STEP, "leaves-process", "after shutdown", "sleep 3071")
        self.assert_fails(GOOD_STEP, "leaves-escaped-process", "after shutdown", "sleep 3072")
        self.assert_fails(GOOD_STEP, "leaves-process-until-shutdown", "after destroy", "sleep 3073")
        self.assert_fails(GOOD_STEP, "leaves-file", "after shutdown", "state/forgotten")
        self.assert_fails(GOOD_STEP, "leaves-sandbox-until-shutdown", "after destroy", "state/sbx_")
        self.assertEqual(
            subprocess.run(["pgrep", "-f", "^sleep 307[123]"], check=False).returncode, 1
        )

    def test_isolation_that_goes_away(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            state = Path(directory) / "starts"
            state.write_text("1")
            for fault, told in {
                "no-isolation-later": "no longer reports any isolation",
                "other-version-later": "is now fake 2",
            }.items():
                self.assertIn(
                    told, str(self.run_fake(GOOD_STEP, "--state", str(state), fault).failures)
                )

    def test_an_error_where_none_is_expected_and_the_other_way_round(self) -> None:
        outcome = self.run_fake('op = "create"', "error-at-create")
        self.assert_said(outcome, "an answer without an error", "UNSUPPORTED")
        wanted = 'op = "create"\nexpect_error = { code = "UNSUPPORTED" }'
        self.assertEqual(self.run_fake(wanted, "error-at-create").status, Status.PASSED)
        self.assert_said(self.run_fake(wanted), "the error", "no error: sandbox")

    def test_a_control_that_fails_is_no_pass(self) -> None:
        broken = NETWORK.replace("tcp\\n", "udp\\n")
        outcome = self.run_fake(broken)
        self.assertEqual(outcome.status, Status.ERROR)
        self.assert_said(outcome, "control, step 1")

    def test_a_listener_that_no_control_reached_is_no_pass(self) -> None:
        unreached = NETWORK.replace(
            "read x < /dev/tcp/127.0.0.1/${host.tcp.port}; echo $x", "echo tcp"
        )
        outcome = self.run_fake(unreached)
        self.assertEqual(outcome.status, Status.ERROR)
        self.assert_said(outcome, "hits of tcp: expected at least 1, observed 0")

    def test_a_probe_that_is_not_built_is_no_failure_of_the_driver(self) -> None:
        outcome = self.run_fake('probe = "files"')
        self.assertEqual(outcome.status, Status.ERROR)
        self.assert_said(outcome, "the probe files is not built")

    def test_steps_in_the_background(self) -> None:
        body = """
        [[case.step]]
        name = "long"
        op = "exec"
        args = ["sleep"]
        wait = false
        [[case.step]]
        name = "end"
        op = "wait"
        execution = "long"
        background = true
        expect = { status = "cancelled" }
        [[case.step]]
        op = "cancel"
        execution = "long"
        [[case.step]]
        join = ["end"]
        op = "exec"
        args = ["print", "${index}"]
        copies = 3
        expect = { stdout = "${index}" }
        """
        outcome = self.run_fake(body)
        self.assertEqual(outcome.status, Status.PASSED, outcome.failures)
        hanging = self.run_fake(body, "hang-at-cancel", seconds=1)
        self.assert_said(hanging, "gave no answer to")

    def test_saved_values(self) -> None:
        body = """
        [[case.step]]
        op = "exec"
        args = ["print", "seven"]
        save = { word = "stdout" }
        [[case.step]]
        op = "exec"
        args = ["print", "${saved.word} ${PATH}"]
        expect = { stdout = "seven ${PATH}" }
        """
        self.assertEqual(self.run_fake(body).status, Status.PASSED)

    def test_a_crash_on_purpose(self) -> None:
        body = """
        [[case.step]]
        op = "create"
        [[case.step]]
        op = "kill-driver"
        [[case.step]]
        op = "start-driver"
        [[case.step]]
        op = "exec"
        args = ["print", "again"]
        expect = { stdout = "again" }
        """
        self.assertEqual(self.run_fake(body).status, Status.PASSED)
        left = self.run_fake(body, "leaves-process")
        self.assert_said(left, "sleep 3071")

    def test_an_orderly_end(self) -> None:
        body = """
        [[case.step]]
        op = "create"
        [[case.step]]
        op = "stop-driver"
        """
        self.assertEqual(self.run_fake(body).status, Status.PASSED)
        left = self.run_fake(body, "exit-code-after-shutdown")
        self.assert_said(left, "step 2: the driver", "exit code 4")

    def test_a_second_driver(self) -> None:
        body = """
        [[case.step]]
        op = "create"
        [[case.step]]
        op = "start-driver"
        beside = true
        [[case.step]]
        op = "kill-driver"
        beside = true
        [[case.step]]
        op = "exec"
        args = ["print", "the first"]
        expect = { stdout = "the first" }
        """
        self.assertEqual(self.run_fake(body).status, Status.PASSED)

    def test_either_answer_is_good(self) -> None:
        body = 'op = "read"\npath = "f"\nexpect = { bytes = { bytes = 2 } }\nexpect_error = { code = "UNSUPPORTED" }'
        self.assertEqual(self.run_fake(body).status, Status.PASSED)
        self.assertEqual(self.run_fake(body, "error-at-read").status, Status.PASSED)
        other = body.replace("UNSUPPORTED", "FS_ERROR").replace("bytes = 2", "bytes = 3")
        self.assert_said(self.run_fake(other), "bytes: expected bytes 3")
        self.assert_said(self.run_fake(other, "error-at-read"), 'code: expected "FS_ERROR"')

    def test_something_to_save_that_is_not_there(self) -> None:
        self.assert_fails(
            GOOD_STEP + '\nsave = { peak = "peakMemoryBytes" }',
            "",
            "peakMemoryBytes: expected something",
        )

    def test_long_and_repeated_texts(self) -> None:
        body = 'op = "exec"\nargs = ["print", "${fill.ä.3000}"]\nexpect = { stdout = { bytes = 6000 } }'
        self.assertEqual(self.run_fake(body).status, Status.PASSED)
        self.assertEqual(
            fill(["a", {"repeat": "b", "count": 2}, "${null}"], {}), ["a", "b", "b", None]
        )

    @unittest.skipUnless(os.geteuid() == 0, "only root can give supplementary groups")
    def test_groups_reach_the_driver(self) -> None:
        self.assertIn("61999", self.said_by("#!/bin/sh\nid -G >&2\n", "groups = [61999]"))

    def test_odd_attributes_need_their_probe(self) -> None:
        outcome = self.run_fake(f"[case.host]\nodd_attributes = true\n[[case.step]]\n{GOOD_STEP}")
        self.assertEqual(outcome.status, Status.ERROR)
        self.assert_said(outcome, "the probe identity is not built")

    def said_by(self, program: str, host: str) -> str:
        """What a driver that is this script says on standard error."""
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory) / "driver"
            script.write_text(program)
            script.chmod(0o755)
            used = case_run.Setting((str(script),), setting().hello, None, False)
            case = make_case(f"[case.host]\n{host}\n[[case.step]]\n{GOOD_STEP}")
            return case_run.run_case(case, used).stderr

    def test_descriptors_and_variables_reach_the_driver(self) -> None:
        host = 'files = [{ name = "f", content = "by descriptor\\n" }]\ndescriptors = [{ number = 9, file = "f" }]'
        said = self.said_by(
            "#!/bin/sh\ncat <&9 >&2\necho $CANARY >&2\n",
            host + '\nenv = { CANARY = "by variable" }',
        )
        self.assertIn("by descriptor\nby variable", said)

    def test_descriptors_beyond_the_soft_limit_reach_the_driver(self) -> None:
        host = 'files = [{ name = "f", content = "by descriptor\\n" }]\ndescriptors = [{ number = 800, file = "f" }]'
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            said = self.said_by("#!/bin/sh\ncat /proc/self/fd/800 >&2\n", host)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertIn("by descriptor", said)

    def test_nothing_of_a_case_stays(self) -> None:
        made: list[Prepared] = []

        def prepare(
            host: Mapping[str, object], marker: str, place: Path, runtime: Path | None
        ) -> Prepared:
            made.append(Prepared(host, marker, place, runtime))
            return made[0]

        with mock.patch.object(case_run, "Prepared", prepare):
            self.run_fake(NETWORK, "crash-at-exec")
        self.assertFalse(made[0].root.exists())
        self.assertEqual(processes.marked(made[0].marker, ""), [])


if __name__ == "__main__":
    unittest.main()
