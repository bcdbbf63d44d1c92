#!/usr/bin/env python3
"""The README's commands print what it says that they print."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from program import DEADLINE, PALMSHED, REPOSITORY, ProgramTest

SESSION = re.compile(r"^```\n(\$ palmshed .*?)^```", re.MULTILINE | re.DOTALL)


def sessions(document):
    """Each a list of commands with their output."""
    for match in SESSION.finditer(document):
        parts = re.split(r"^\$ ", match[1], flags=re.MULTILINE)[1:]
        yield [part.split("\n", 1) for part in parts]


def comparable(output):
    """How far a program gets over a limit that is sampled differs from run to run."""
    return re.sub(r"\(used [\d.]+ ", "(used N ", output)


class Readme(ProgramTest):
    def test_sessions_are_what_one_sees(self):
        found = list(sessions((REPOSITORY / "README.md").read_text()))
        self.assertTrue(found)
        path = f"{Path(PALMSHED).resolve().parent}:{os.environ['PATH']}"
        for commands in found:
            status = 0
            for command, expected in commands:
                with self.subTest(command):
                    # The shell has the status of the command before it.
                    answer = subprocess.run(
                        ["sh", "-c", f"(exit {status}); {command}"],
                        env=dict(self.environment, PATH=path),
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        timeout=DEADLINE,
                        check=False,
                    )
                    status = answer.returncode
                    self.assertEqual(comparable(answer.stdout), comparable(expected))

    def test_another_output_would_be_noticed(self):
        [[first, *_]] = sessions("```\n$ palmshed version\nno version\n```\n")
        answer = self.palmshed(*first[0].split()[1:])
        self.assertNotEqual(comparable(answer.stdout.decode()), comparable(first[1]))


if __name__ == "__main__":
    unittest.main()
