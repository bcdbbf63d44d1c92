#!/usr/bin/env python3
"""The program's output: untouched, complete, live; ours apart from it. C011."""

import hashlib
import json
import os
import subprocess
import time
import unittest

from program import DEADLINE, ProgramTest, queued, read_until, wait_until

ALL_BYTES = "import sys; sys.{}.buffer.write(bytes(range(256)) * 4096)"
DIGEST = "fbbab289f7f94b25736c58be46a994c441fd02552cc6022352e3d86d2fab7c83"


class Bytes(ProgramTest):
    def test_every_byte_arrives_on_its_own_stream(self):
        for stream in ("stdout", "stderr"):
            with self.subTest(stream):
                answer = self.run_program("--", "/usr/bin/python3", "-c", ALL_BYTES.format(stream))
                self.assertEqual(answer.returncode, 0, answer.stderr[:1000])
                self.assertEqual(hashlib.sha256(getattr(answer, stream)).hexdigest(), DIGEST)
                other = answer.stderr if stream == "stdout" else answer.stdout
                self.assertEqual(other, b"")

    def test_arguments_arrive_byte_for_byte(self):
        arguments = ["", "[a,b]", "%%", "{}", "--", "-x", "a b", "a\nb", "'\"\\", os.fsdecode(b"\xff")]
        answer = self.run_program("--", "printf", "%s\\0", *arguments)
        self.assert_result(answer, 0, b"".join(os.fsencode(a) + b"\0" for a in arguments), b"")

    def test_options_after_the_program_are_its_own(self):
        self.assert_result(self.run_program("echo", "-e", "--timeout", "x"), 0)
        answer = self.run_program("printf", "%s ", "--timeout", "--", "-i")
        self.assert_result(answer, 0, b"--timeout -- -i ", b"")

    def test_retention_does_not_cut_what_is_shown(self):
        # More than pipes and buffers hold, with a reader that lags behind from the start.
        process = self.start("run", "--max-output", "1k", "--", "seq", "1", "500000")
        wait_until(lambda: queued(process.stdout) > 32768, "a pipe that is nearly full")
        stdout, _ = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(stdout, b"".join(b"%d\n" % i for i in range(1, 500001)))

    def test_output_is_live(self):
        process = self.started("echo ready; read x; echo $x", "-i", stdin=subprocess.PIPE)
        self.assertIsNone(process.poll())  # It was shown while the program was still running.
        process.stdin.write(b"go\n")
        read_until(process.stdout, b"go\n")

    def test_a_slow_reader_loses_nothing(self):
        process = self.start("run", "--", "seq", "1", "1000000")
        size = 0
        while piece := process.stdout.read(1 << 16):
            size += len(piece)
            time.sleep(0.001)
        self.assertEqual(size, 6888896)
        self.assertEqual(process.wait(timeout=DEADLINE), 0)

    def test_files_as_output(self):
        with (self.directory / "out").open("wb+") as file:
            answer = self.run_program("--", "echo", "to a file", stdout=file)
            self.assertEqual(answer.returncode, 0)
            file.seek(0)
            self.assertEqual(file.read(), b"to a file\n")


class Broken(ProgramTest):
    def test_a_reader_that_goes_away_ends_the_program(self):
        process = self.start("run", "--", "yes")
        read_until(process.stdout, b"y\n")
        start = time.monotonic()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=DEADLINE), 141)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(process.stderr.read(), b"")
        self.assert_no_orphans()

    def test_a_program_that_writes_nothing_more_is_left_alone(self):
        process = self.started("echo ready; exec >/dev/null; echo x; sleep 0.5; exit 4")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=DEADLINE), 4)

    def test_lost_output_is_never_a_success(self):
        with open("/dev/full", "wb") as full:
            answer = self.run_program("--", "echo", "lost", stdout=full)
        self.assertEqual(answer.returncode, 125)
        self.assert_says(answer, "standard output", "ENOSPC")

    def test_nor_is_lost_output_of_our_own(self):
        for arguments in (("version",), ("--help",), ("help", "run"), ("completion", "bash")):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                answer = self.palmshed(*arguments, stdout=full)
                self.assertEqual(answer.returncode, 125)
                self.assert_says(answer, "ENOSPC")


class OwnWords(ProgramTest):
    def test_quiet_leaves_out_how_it_ended(self):
        loud = self.run_program("--timeout", "100ms", "--", "sleep", "60")
        self.assert_says(loud, "killed")
        quiet = self.run_program("-q", "--timeout", "100ms", "--", "sleep", "60")
        self.assert_result(quiet, 124, b"", b"")

    def test_quiet_still_reports_failures(self):
        self.assert_says(self.run_program("-q", "--", "nosuch-program"), "nosuch-program")

    def test_names_cannot_forge_lines(self):
        answer = self.run_program("--", "no\npalmshed: all is well\x1b[2K")
        self.assertEqual(len(answer.stderr.splitlines()), 1)
        self.assertNotIn(b"\x1b", answer.stderr)

    def test_timings_name_every_step(self):
        answer = self.run_program("--timings", "--", "true")
        self.assertEqual(answer.returncode, 0)
        lines = [line.split()[2:] for line in answer.stderr.decode().splitlines()]
        micros = {step: int(duration) for step, duration, unit in lines}
        steps = list(dict.fromkeys(step.split(".")[0] for step in micros))
        self.assertEqual(steps, ["engine", "create", "copy", "exec", "destroy", "cleanup", "total"])
        parts = ("create.directory", "create.init", "exec.send", "exec.run", "destroy.death")
        self.assertLessEqual(set(parts), micros.keys())
        self.assertGreaterEqual(min(micros.values()), 0)
        total = micros.pop("total")
        # Each is cut to whole microseconds.
        self.assertAlmostEqual(sum(micros.values()), total, delta=len(micros))

    def test_timings_are_in_the_document_too(self):
        for asked in (True, False):
            flags = ["--timings"] if asked else []
            path = self.directory / "result.json"
            answer = self.run_program(*flags, "--json", str(path), "--", "true")
            self.assertEqual(answer.returncode, 0)
            document = json.loads(path.read_text())
            self.assertEqual("timings" in document["metadata"], asked)

    def test_events_name_identifiers_and_never_content(self):
        self.environment["SANDBOX_LOG"] = "debug"
        answer = self.run_program("-e", "SECRET=hunter2", "--", "echo", "private")
        self.assert_result(answer, 0, b"private\n")
        self.assert_says(answer, "event exec.start", "sandbox=sbx_", "execution=exec_")
        self.assert_says(answer, "event exec.end", "status=completed")
        for content in (b"private", b"hunter2", b"SECRET", b"echo"):
            self.assertNotIn(content, answer.stderr)

    def test_events_are_off_by_default(self):
        self.assert_result(self.run_program("--", "true"), 0, b"", b"")


if __name__ == "__main__":
    unittest.main()
