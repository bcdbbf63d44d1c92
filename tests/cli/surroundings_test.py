#!/usr/bin/env python3
"""Files copied in, the environment, and working in odd places."""

import os
import subprocess
import unittest

from program import DEADLINE, PALMSHED, ProgramTest


class Copy(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tree = self.directory / "tree"
        (self.tree / "sub").mkdir(parents=True)
        (self.tree / "a.txt").write_text("alpha")
        (self.tree / "sub" / "run.sh").write_text("#!/bin/sh\necho from the script\n")
        (self.tree / "sub" / "run.sh").chmod(0o755)

    def listing(self, *flags, **options):
        answer = self.shell("find . -mindepth 1 | sort", *flags, **options)
        self.assertEqual(answer.returncode, 0, answer)
        return answer.stdout.decode().split()

    def test_the_workspace_is_empty_without_it(self):
        self.assertEqual(self.listing(), [])

    def test_a_file_keeps_its_name_and_content(self):
        answer = self.run_program("--copy", str(self.tree / "a.txt"), "--", "cat", "a.txt")
        self.assert_result(answer, 0, b"alpha", b"")

    def test_a_target_may_be_named(self):
        source = str(self.tree / "a.txt")
        self.assertEqual(self.listing("--copy", f"{source}:x/b.txt"), ["./x", "./x/b.txt"])
        self.assertEqual(self.listing("--copy", f"{source}:x/"), ["./x", "./x/a.txt"])

    def test_a_directory_comes_whole_and_scripts_run(self):
        flags = ("--copy", str(self.tree))
        self.assertEqual(
            self.listing(*flags), ["./tree", "./tree/a.txt", "./tree/sub", "./tree/sub/run.sh"]
        )
        answer = self.run_program(*flags, "--", "tree/sub/run.sh")
        self.assert_result(answer, 0, b"from the script\n", b"")

    def test_the_current_directory_becomes_the_workspace(self):
        self.assertEqual(
            self.listing("--copy", ".", cwd=self.tree), ["./a.txt", "./sub", "./sub/run.sh"]
        )

    def test_copies_follow_their_order(self):
        (self.directory / "a.txt").write_text("omega")
        answer = self.run_program(
            "--copy", str(self.tree / "a.txt"), "--copy", str(self.directory / "a.txt"),
            "--", "cat", "a.txt",
        )
        self.assert_result(answer, 0, b"omega", b"")

    def test_the_original_is_not_touched(self):
        answer = self.shell("echo new >a.txt; rm sub/run.sh", "--copy", ".", cwd=self.tree)
        self.assert_result(answer, 0, b"", b"")
        self.assertEqual((self.tree / "a.txt").read_text(), "alpha")
        self.assertTrue((self.tree / "sub" / "run.sh").exists())

    def test_a_missing_source_is_named(self):
        answer = self.run_program("--copy", "/nosuch/file", "--", "true")
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "/nosuch/file")

    def test_a_target_outside_is_refused(self):
        for target in ("../x", "/etc/x"):
            answer = self.run_program("--copy", f"{self.tree / 'a.txt'}:{target}", "--", "true")
            self.assert_result(answer, 125, b"")
            self.assert_says(answer, target)


class Environment(ProgramTest):
    def test_nothing_of_ours_is_inherited(self):
        self.environment["LEAK"] = "leaked"
        answer = self.run_program("--", "env")
        self.assertNotIn(b"leaked", answer.stdout)
        self.assertIn(b"PALMSHED_SANDBOX=1\n", answer.stdout)

    def test_what_is_named_is_passed(self):
        self.environment["OURS"] = "from outside"
        answer = self.run_program(
            "-e", "A=1", "--env", "B=x=y", "-eC=", "-e", "OURS", "-e", "UNSET_HERE", "--", "env"
        )
        lines = answer.stdout.decode().splitlines()
        for line in ("A=1", "B=x=y", "C=", "OURS=from outside"):
            self.assertIn(line, lines)
        self.assertFalse([line for line in lines if line.startswith("UNSET_HERE")])

    def test_our_own_may_be_nearly_empty(self):
        # No HOME, no PATH, no XDG variable: as in a cron job or a unit file.
        answer = self.run_program("--", "echo", "hi", env={})
        self.assert_result(answer, 0, b"hi\n", b"")

    def test_workdir(self):
        answer = self.run_program("-w", "deep/down", "--", "pwd")
        self.assert_result(answer, 0, b"/workspace/deep/down\n", b"")


class Places(ProgramTest):
    def test_any_current_directory(self):
        for place in ("/", "/proc", "/usr/bin", str(self.directory)):
            with self.subTest(place):
                self.assert_result(self.run_program("--", "echo", "hi", cwd=place), 0, b"hi\n", b"")

    def test_a_deleted_current_directory(self):
        gone = self.directory / "gone"
        gone.mkdir()
        script = 'rmdir "$PWD" && exec "$0" run -- echo hi'
        answer = subprocess.run(
            ["sh", "-c", script, PALMSHED], cwd=gone, capture_output=True, check=False,
            timeout=DEADLINE, env=self.environment,
        )
        self.assert_result(answer, 0, b"hi\n", b"")
        self.assertFalse(gone.exists())

    def test_our_umask_is_not_inherited(self):
        """Our umask is not the program's, nor that of what is copied in."""
        (self.directory / "a.txt").write_text("alpha")
        answer = self.shell(
            "umask; stat -c %a a.txt", "--copy", str(self.directory / "a.txt"),
            preexec_fn=lambda: os.umask(0o077),
        )
        self.assert_result(answer, 0, b"0022\n644\n", b"")


if __name__ == "__main__":
    unittest.main()
