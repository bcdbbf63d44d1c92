#!/usr/bin/env python3
"""Standard input: never waited for unless asked, and then passed on whole. C013."""

import hashlib
import os
import subprocess
import threading
import unittest

from program import DEADLINE, ProgramTest, read_until


class WithoutInteractive(ProgramTest):
    def test_the_program_reads_end_of_file(self):
        for stdin in (subprocess.DEVNULL, subprocess.PIPE):
            with self.subTest(stdin):
                options = {"stdin": stdin} if stdin == subprocess.DEVNULL else {"input": b"unread"}
                self.assert_result(self.shell("cat; echo done", **options), 0, b"done\n", b"")
                self.assert_result(self.shell("read x; echo rc=$?", **options), 0, b"rc=1\n", b"")

    def test_an_input_that_stays_open_is_not_waited_for(self):
        process = self.start("run", "--", "echo", "hi", stdin=subprocess.PIPE)
        self.assertEqual(process.wait(timeout=DEADLINE), 0)  # Its stdin is open all the time.
        self.assertEqual(process.stdout.read(), b"hi\n")

    def test_our_input_is_left_to_others(self):
        reader, writer = os.pipe()
        os.write(writer, b"for the next one")
        self.assert_result(self.run_program("--", "cat", stdin=reader), 0, b"", b"")
        self.assertEqual(os.read(reader, 100), b"for the next one")
        os.close(reader)
        os.close(writer)


class Closed(ProgramTest):
    def closing(self, redirection, *arguments):
        """Starts it from a shell that closes descriptors."""
        script = f'exec "$0" "$@" {redirection}'
        command = ["sh", "-c", script, os.environ["PALMSHED"], *arguments]
        return subprocess.run(
            command, capture_output=True, env=self.environment, timeout=DEADLINE, check=False
        )

    def test_closed_stdin(self):
        self.assert_result(self.closing("0<&-", "run", "--", "echo", "hi"), 0, b"hi\n", b"")
        self.assert_result(self.closing("0<&-", "run", "-i", "--", "cat"), 0, b"", b"")

    def test_all_closed(self):
        answer = self.closing("0<&- 1>&- 2>&-", "run", "--", "sh", "-c", "echo lost; exit 7")
        self.assert_result(answer, 7, b"", b"")

    def test_descriptor_0_inside_is_never_another(self):
        command = "readlink /proc/self/fd/0"
        answer = self.closing("0<&-", "run", "--", "sh", "-c", command)
        self.assert_result(answer, 0, b"/dev/null\n", b"")


class Interactive(ProgramTest):
    def test_input_is_passed_on_byte_for_byte(self):
        for data in (b"", b"one line\n", bytes(range(256)) * 4096):
            with self.subTest(len(data)):
                answer = self.run_program("-i", "--", "sha256sum", input=data)
                digest = hashlib.sha256(data).hexdigest().encode()
                self.assert_result(answer, 0, digest + b"  -\n", b"")

    def test_more_than_the_queue_holds(self):
        # The program reads nothing until the pipe is full and the engine's queue is as well.
        data = os.urandom(1 << 20) * 40
        process = self.start(
            "run", "-i", "--", "sh", "-c", "echo ready; sleep 1; sha256sum", stdin=subprocess.PIPE
        )
        feeder = threading.Thread(target=self.feed, args=(process.stdin, data))
        feeder.start()
        self.assertIn(b"ready\n", read_until(process.stdout, b"ready\n"))
        answer = read_until(process.stdout, b"-\n")
        feeder.join(DEADLINE)
        self.assertEqual(answer.split()[0].decode(), hashlib.sha256(data).hexdigest())
        self.assertEqual(process.wait(timeout=DEADLINE), 0)

    @staticmethod
    def feed(stream, data):
        view = memoryview(data)
        while view:
            view = view[stream.write(view):]
        stream.close()

    def test_a_file_as_input(self):
        path = self.directory / "input"
        path.write_bytes(b"from a file\n")
        with path.open("rb") as file:
            self.assert_result(
                self.run_program("-i", "--", "cat", stdin=file), 0, b"from a file\n", b""
            )

    def test_a_conversation(self):
        command = "echo ready; while read x; do echo got $x; done; echo end"
        process = self.started(command, "-i", stdin=subprocess.PIPE)
        for word in (b"one", b"two"):
            process.stdin.write(word + b"\n")
            read_until(process.stdout, b"got " + word + b"\n")
        process.stdin.close()
        read_until(process.stdout, b"end\n")
        self.assertEqual(process.wait(timeout=DEADLINE), 0)

    def test_an_open_input_does_not_outlive_the_program(self):
        process = self.start("run", "-i", "--", "echo", "hi", stdin=subprocess.PIPE)
        self.assertEqual(process.wait(timeout=DEADLINE), 0)
        self.assertEqual(process.stdout.read(), b"hi\n")

    def test_a_program_that_stops_reading(self):
        with open("/dev/zero", "rb") as zero:
            answer = self.run_program("-i", "--", "head", "-c", "3", stdin=zero)
        self.assert_result(answer, 0, b"\0\0\0", b"")

    def test_an_input_that_cannot_be_read_is_reported(self):
        directory = os.open(self.directory, os.O_RDONLY)
        answer = self.run_program("-i", "--", "cat", stdin=directory)
        os.close(directory)
        self.assert_result(answer, 0, b"")
        self.assert_says(answer, "standard input", "EISDIR")


if __name__ == "__main__":
    unittest.main()
