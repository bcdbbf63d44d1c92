#!/usr/bin/env python3
"""Help, manual page and completions, as their users get them."""

import shutil
import subprocess
import unittest
from pathlib import Path

from program import DEADLINE, PALMSHED, ProgramTest

# Puts words in the place of a command line and prints what bash would offer for the last one.
COMPLETE = """
source /dev/stdin <<< "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_palmshed
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Help(ProgramTest):
    def test_every_way_to_ask_gives_the_same(self):
        for arguments, others in {
            ("--help",): [("-h",), ("help",)],
            ("run", "--help"): [("help", "run"), ("run", "-h"), ("run", "--nosuch", "--help")],
        }.items():
            text = self.palmshed(*arguments).stdout
            self.assertIn(b"Usage: palmshed", text)
            for other in others:
                self.assert_result(self.palmshed(*other), 0, text, b"")

    def test_a_programs_help_is_its_own(self):
        answer = self.run_program("--", "ls", "--help")
        self.assertEqual(answer.returncode, 0)
        self.assertIn(b"Usage: ls", answer.stdout)

    def test_run_shows_groups_examples_and_exit_codes(self):
        text = self.palmshed("help", "run").stdout.decode()
        for heading in ("Limits:", "Examples:", "Exit codes:"):
            self.assertIn(f"\n{heading}\n", text)


class BashCompletion(ProgramTest):
    def setUp(self):
        super().setUp()
        self.script = self.palmshed("completion", "bash").stdout.decode()

    def offers(self, *words):
        answer = subprocess.run(
            ["bash", "--norc", "-c", COMPLETE, "bash", "palmshed", *words],
            env=dict(self.environment, SCRIPT=self.script),
            cwd=self.directory,
            capture_output=True,
            timeout=DEADLINE,
            check=True,
        )
        self.assertEqual(answer.stderr, b"")
        return answer.stdout.decode().split()

    def test_verbs(self):
        self.assertEqual(self.offers("do"), ["doctor"])
        self.assertIn("run", self.offers(""))

    def test_options_of_the_verb(self):
        self.assertEqual(self.offers("run", "--time"), ["--timeout"])
        self.assertEqual(self.offers("version", "--"), ["--format", "--help"])

    def test_values(self):
        self.assertEqual(self.offers("run", "--network", ""), ["disabled", "allow", "proxy"])
        self.assertEqual(self.offers("run", "--timeout", ""), [])
        self.assertEqual(self.offers("completion", "z"), ["zsh"])
        self.assertEqual(self.offers("help", "doc"), ["doctor"])

    def test_files(self):
        (self.directory / "notes.txt").touch()
        self.assertEqual(self.offers("run", "--copy", "no"), ["notes.txt"])
        self.assertEqual(self.offers("run", "-i", "-e", "A=1", "cat", "no"), ["notes.txt"])

    def test_the_program_is_a_command(self):
        self.assertIn("true", self.offers("run", "--", "tru"))
        self.assertIn("true", self.offers("run", "-e", "A=1", "tru"))

    def test_the_programs_own_options_are_not_ours(self):
        self.assertNotIn("--timeout", self.offers("run", "cat", "--time"))


class OtherShells(ProgramTest):
    def check(self, shell, *command):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        script = self.directory / "script"
        script.write_bytes(self.palmshed("completion", shell).stdout)
        subprocess.run([shell, *command, str(script)], check=True, timeout=DEADLINE)

    def test_zsh_can_read_it(self):
        self.check("zsh", "-n")

    def test_fish_can_read_it(self):
        self.check("fish", "--no-execute")


class ManualPage(ProgramTest):
    def test_is_well_formed(self):
        page = Path(PALMSHED).parents[1] / "cli" / "share" / "palmshed.1"
        if not page.is_file() or not shutil.which("groff"):
            self.skipTest("needs the build tree's manual page and groff")
        answer = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", str(page)],
            capture_output=True, timeout=DEADLINE, check=True,
        )
        self.assertEqual(answer.stderr, b"")
        self.assertIn("EXIT STATUS", answer.stdout.decode())


if __name__ == "__main__":
    unittest.main()
