"""One case told in full."""

import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from runner.paths import ENTRY
from tests.support import GOOD_STEP, case_text, fake_command, rules_text

CONTROLLED = """
[[case.control]]
op = "exec"
on = "host"
command = "echo on the host"
expect = { stdout = "on the host\\n" }

[[case.step]]
op = "exec"
args = ["print", "hello"]
expect = { stdout = "hello", exitCode = 0 }

[case.after]
gone = ["/nowhere/at/all"]
"""


class Laboratory(unittest.TestCase):
    def prove(self, body: str, *faults: str, name: str = "the-case") -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as directory:
            top = Path(directory)
            for kind, text in (("cases", case_text(body)), ("rules", rules_text("the-case"))):
                (top / kind).mkdir()
                (top / kind / "exec.toml").write_text(text)
            words = [sys.executable, str(ENTRY), "prove", name]
            words += ["--driver", shlex.join(fake_command(*faults))]
            words += ["--cases", str(top / "cases"), "--rules", str(top / "rules")]
            done = subprocess.run(words, capture_output=True, text=True, timeout=40, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_what_holds_is_told_in_full(self) -> None:
        status, said = self.prove(CONTROLLED)
        self.assertEqual(status, 0, said)
        told = said.splitlines()
        self.assertEqual(told[0], "EXEC-001 (MUST): Programs run.")
        self.assertEqual(told[1], "case the-case: What the test is about")
        self.assertEqual(told[3], 'control, step 1: exec "echo on the host" on the host')
        self.assertEqual(told[5], "  observed  stdout 'on the host\\n'")
        self.assertEqual(told[6], 'step 1: exec ["print", "hello"]')
        self.assertEqual(told[7], '  expected  {"stdout": "hello", "exitCode": 0}')
        self.assertEqual(told[8], "  observed  stdout 'hello', exitCode 0")
        self.assertIn('  expected  {"gone": ["/nowhere/at/all"]}', told)
        self.assertIn("leftovers: after shutdown", told)
        self.assertEqual(told[-1], "the-case: holds")

    def test_what_is_violated(self) -> None:
        status, said = self.prove(GOOD_STEP, "wrong-output")
        self.assertEqual(status, 1)
        self.assertIn("  observed  stdout 'HELLO', exitCode 0", said)
        self.assertIn("not as it must be: step 1: stdout: expected", said)
        self.assertTrue(said.endswith("the-case: VIOLATED\n"), said)

    def test_a_control_that_does_not_hold_is_no_verdict(self) -> None:
        status, said = self.prove(CONTROLLED.replace("echo on", "echo off"))
        self.assertEqual(status, 1)
        self.assertIn("no verdict", said.splitlines()[-1])

    def test_all_cases_of_a_rule(self) -> None:
        status, said = self.prove(GOOD_STEP, name="EXEC-001")
        self.assertEqual((status, said.splitlines()[-1]), (0, "the-case: holds"))

    def test_a_name_that_there_is_not(self) -> None:
        self.assertEqual(self.prove(GOOD_STEP, name="nothing")[0], 2)
