#!/usr/bin/env python3
"""The table of exit codes. C012, C052, C055."""

import json
import os
import resource
import time
import unittest

from program import ProgramTest


class OwnEnd(ProgramTest):
    """C012: what the program itself did is passed on, and is told from what was done to it."""

    def termination_of(self, command):
        document = self.directory / "result.json"
        answer = self.shell(command, "--json", str(document))
        return answer, json.loads(document.read_text())

    def test_exit_codes_are_the_programs(self):
        for command, code in {
            "true": 0,
            "exit 1": 1,
            "exit 42": 42,
            "exit 124": 124,
            "exit 127": 127,
            "exit 137": 137,
            "exit 143": 143,
            "exit 255": 255,
            "exit 256": 0,
        }.items():
            with self.subTest(command):
                answer, result = self.termination_of(command)
                self.assert_result(answer, code, b"", b"")
                self.assertEqual(result["termination"]["cause"], "exited")
                self.assertNotIn("signal", result["termination"])

    def test_signals_are_told_from_exit_codes(self):
        for number, name in {9: "SIGKILL", 15: "SIGTERM", 11: "SIGSEGV", 14: "SIGALRM"}.items():
            with self.subTest(name):
                answer, result = self.termination_of(f"kill -{number} $$")
                self.assert_result(answer, 128 + number, b"")
                self.assert_says(answer, name)
                self.assertEqual(result["termination"]["cause"], "signaled")
                self.assertEqual(result["termination"]["signal"], number)

    def test_no_signal_is_claimed_for_an_exit_code(self):
        answer = self.shell("exit 139")
        self.assert_result(answer, 139, b"", b"")


class NotStarted(ProgramTest):
    """C055: missing, not executable and our own failures have codes of their own."""

    def file(self, name, content, mode):
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(mode)
        return str(path)

    def test_missing_programs(self):
        for program in ("nosuch-program", "./nosuch", "/usr/bin/nosuch"):
            with self.subTest(program):
                answer = self.run_program("--", program)
                self.assert_result(answer, 127, b"")
                self.assert_says(answer, "cannot start", "ENOENT")

    def test_a_file_without_x_bit(self):
        path = self.file("notexec", b"#!/bin/sh\necho ran\n", 0o644)
        answer = self.run_program("--copy", path, "--", "./notexec")
        self.assert_result(answer, 126, b"")
        self.assert_says(answer, "./notexec", "EACCES")
        os.chmod(path, 0o755)  # The control: the bit is what was missing.
        self.assert_result(
            self.run_program("--copy", path, "--", "./notexec"), 0, b"ran\n", b""
        )

    def test_a_directory(self):
        (self.directory / "dir").mkdir()
        answer = self.run_program("--copy", str(self.directory / "dir"), "--", "./dir")
        self.assert_result(answer, 126, b"")

    def test_a_missing_interpreter(self):
        path = self.file("script", b"#!/no/interpreter\n", 0o755)
        answer = self.run_program("--copy", path, "--", "./script")
        self.assert_result(answer, 126, b"")
        self.assert_says(answer, "./script", "interpreter")

    def test_another_architecture(self):
        # ELF, 64 bits, little endian, executable, for a machine of type 0xffff.
        header = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xff\xff\x01\x00\x00\x00"
        path = self.file("alien", header + bytes(40), 0o755)
        answer = self.run_program("--copy", path, "--", "./alien")
        self.assert_result(answer, 126, b"")
        self.assert_says(answer, "./alien", "ENOEXEC")

    def test_the_shells_own_words(self):
        answer = self.shell("nosuch-program")
        self.assertEqual(answer.returncode, 127)
        self.assertNotIn(b"palmshed:", answer.stderr)
        self.assertIn(b"nosuch-program", answer.stderr)

    def test_our_own_failure(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))

        answer = self.run_program("--", "true", preexec_fn=few_descriptors)
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "EMFILE")


class BadUsage(ProgramTest):
    def test_is_125_and_names_the_fault(self):
        for arguments, words in {
            (): ["--help"],
            ("nosuch-verb",): ["nosuch-verb"],
            ("run",): ["no program"],
            ("run", "--"): ["no program"],
            ("run", "--nosuch", "--", "true"): ["--nosuch"],
            ("run", "--timeout"): ["--timeout"],
            ("run", "--timeout", "5", "--", "true"): ["--timeout", "unit"],
            ("run", "--timeout=", "--", "true"): ["--timeout"],
            ("run", "--network", "maybe", "--", "true"): ["--network", "maybe"],
            ("run", "--json", "-", "--", "true"): ["--json"],
            ("run", "--degraded", "nonsense", "--", "true"): ["degraded"],
            ("run", "--", ""): ["program"],
            ("doctor", "extra"): ["extra"],
            ("version", "--format", "xml"): ["--format"],
            ("help", "nosuch-verb"): ["nosuch-verb"],
            ("completion", "csh"): ["csh"],
        }.items():
            with self.subTest(arguments):
                answer = self.palmshed(*arguments)
                self.assert_result(answer, 125, b"")
                self.assert_says(answer, *words)


class Timeout(ProgramTest):
    """C052: a timeout comes when it is due, and only where one was asked for."""

    def test_ends_the_program_in_time(self):
        for seconds in (1, 2):
            with self.subTest(seconds):
                start = time.monotonic()
                answer = self.run_program("--timeout", f"{seconds}s", "--", "sleep", "60")
                took = time.monotonic() - start
                self.assert_result(answer, 124, b"")
                self.assert_says(answer, "--timeout", f"{seconds} s")
                self.assertGreaterEqual(took, seconds)
                self.assertLess(took, seconds + 1)

    def test_keeps_what_was_written_before(self):
        answer = self.shell("echo before; sleep 60", "--timeout", "2s")
        self.assert_result(answer, 124, b"before\n")

    def test_is_not_the_programs_137(self):
        document = self.directory / "result.json"
        self.shell("sleep 60", "--timeout", "200ms", "--json", str(document))
        result = json.loads(document.read_text())
        self.assertEqual(result["status"], "timedout")
        self.assertEqual(result["exitCode"], -1)
        self.assertTrue(result["timedOut"])

    def test_zero_and_ample_limits_do_not_cut_in(self):
        for flags in ((), ("--timeout", "0"), ("--timeout", "1h")):
            with self.subTest(flags):
                answer = self.shell("sleep 0.3; echo ok", *flags)
                self.assert_result(answer, 0, b"ok\n", b"")


if __name__ == "__main__":
    unittest.main()
