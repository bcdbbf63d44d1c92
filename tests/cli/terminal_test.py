#!/usr/bin/env python3
"""`run -t` and `run -it`: the program's terminal, and ours, which gets its modes back."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from program import DEADLINE, PALMSHED, ProgramTest, wait_until

LFLAG = 3
MODES_OF_A_SHELL = termios.ICANON | termios.ECHO | termios.ISIG


def window(rows, columns):
    return struct.pack("HHHH", rows, columns, 0, 0)


class Session:
    """The program on a terminal, whose session it leads, as a terminal emulator starts it."""

    def __init__(self, test, *arguments, size=(24, 80)):
        self.master, slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, window(*size))
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [PALMSHED, "run", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=test.environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        test.addCleanup(test.discard, self.process)

    def type(self, keys):
        os.write(self.master, keys)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, window(rows, columns))

    def read(self, wait):
        if not select.select([self.master], [], [], wait)[0]:
            return False
        try:
            self.seen += os.read(self.master, 65536)
        except OSError:  # EIO: nobody has it open.
            return False
        return True

    def await_text(self, text):
        deadline = time.monotonic() + DEADLINE
        while text not in self.seen:
            if not self.read(max(0, deadline - time.monotonic())):
                raise AssertionError(f"no {text!r} in {self.seen!r}")

    def end(self):
        """The exit code, once everything it has written has been read."""

        def ended():
            self.read(0)
            return self.process.poll() is not None

        wait_until(ended, "the end of the program")
        while self.read(0):
            pass
        return self.process.returncode

    def is_raw(self):
        return not termios.tcgetattr(self.master)[LFLAG] & MODES_OF_A_SHELL

    def is_restored(self):
        return termios.tcgetattr(self.master) == self.before


class OwnTerminal(ProgramTest):
    def shell(self, command, *flags, **options):
        return Session(self, *flags, "--", "sh", "-c", command, **options)

    def ready(self, command, *flags, trap="", **options):
        session = self.shell(f"{trap}\necho re''ady; {command}", "-it", *flags, **options)
        session.await_text(b"ready\r\n")
        self.assertTrue(session.is_raw())
        return session

    def test_the_program_has_one_like_it(self):
        self.environment["TERM"] = "screen"
        session = self.shell("stty size; echo $TERM; test -t 0 && tty", "-it", size=(31, 97))
        self.assertEqual(session.end(), 0)
        self.assertEqual(session.seen, b"31 97\r\nscreen\r\n/dev/pts/0\r\n")
        self.assertTrue(session.is_restored())

    def test_a_terminal_without_a_size_counts_as_the_usual_one(self):
        session = self.shell("stty size", "-it", size=(0, 0))
        self.assertEqual(session.end(), 0)
        self.assertEqual(session.seen, b"24 80\r\n")

    def test_keys_go_to_the_program(self):
        # A trap may end the read.
        session = self.ready("read x || read x; echo got-$x; exit 4", trap="trap 'echo caught' INT")
        session.type(b"\x03")
        session.await_text(b"caught")
        session.type(b"one\r")
        self.assertEqual(session.end(), 4)
        self.assertIn(b"one\r\ngot-one\r\n", session.seen)
        self.assertTrue(session.is_restored())

    def test_nothing_is_echoed_twice(self):
        session = self.ready("stty -echo; echo now; read x; echo $x")
        session.await_text(b"now\r\n")
        session.type(b"secret\r")
        self.assertEqual(session.end(), 0)
        self.assertEqual(session.seen, b"ready\r\nnow\r\nsecret\r\n")

    def test_jobs_stop_and_continue_inside(self):
        session = Session(self, "-it", "-e", "PS1=> ", "--", "sh", "-i")
        session.await_text(b"> ")
        session.type(b"sh -c 'echo beg''un; read x; echo back-$x; exec sleep 100'\r")
        session.await_text(b"begun\r\n")
        session.type(b"\x1a")
        session.await_text(b"Stopped")
        session.type(b"fg\rgo\r")
        session.await_text(b"back-go\r\n")
        session.type(b"\x03exit 6\r")
        self.assertEqual(session.end(), 6)
        self.assertTrue(session.is_restored())

    def test_a_new_size_reaches_the_program(self):
        session = self.ready(
            "while :; do sleep 1 & wait; done", trap="trap 'stty size; exit 0' WINCH"
        )
        session.resize(40, 120)
        self.assertEqual(session.end(), 0)
        self.assertEqual(session.seen, b"ready\r\n40 120\r\n")

    def test_the_result_document_is_the_same(self):
        document = self.directory / "result.json"
        session = self.shell("echo out; exit 3", "-it", "--json", str(document))
        self.assertEqual(session.end(), 3)
        result = json.loads(document.read_text())
        self.assertEqual((result["stdout"], result["exitCode"]), ("out\r\n", 3))

    def test_modes_come_back_after_each_kind_of_end(self):
        for command, code in {"exit 0": 0, "exit 9": 9, "kill -9 $$": 137}.items():
            with self.subTest(command):
                session = self.ready(f"read x; {command}")
                session.type(b"\r")
                self.assertEqual(session.end(), code)
                self.assertTrue(session.is_restored())

    def test_modes_come_back_after_a_limit(self):
        session = self.ready("exec sleep 100", "--timeout", "3s")
        self.assertEqual(session.end(), 124)
        self.assertTrue(session.is_restored())
        self.assertIn(b"\npalmshed: ", session.seen)

    def test_modes_come_back_when_nothing_can_be_run(self):
        session = Session(self, "-it", "--", "./no-such-program")
        self.assertEqual(session.end(), 127)
        self.assertTrue(session.is_restored())

    def test_modes_come_back_after_each_signal_to_us(self):
        signals = {
            signal.SIGINT: 130,
            signal.SIGTERM: 143,
            signal.SIGHUP: 129,
            signal.SIGQUIT: -signal.SIGQUIT,
            signal.SIGABRT: -signal.SIGABRT,
            signal.SIGSEGV: -signal.SIGSEGV,
            signal.SIGUSR1: -signal.SIGUSR1,
        }
        for number, code in signals.items():
            with self.subTest(number):
                session = self.ready("exec sleep 100")
                session.process.send_signal(number)
                self.assertEqual(session.end(), code)
                self.assertTrue(session.is_restored())
                self.assert_no_orphans()

    def test_modes_come_back_after_a_second_signal(self):
        session = self.ready("while :; do sleep 0.2; done", trap="trap '' TERM HUP INT")
        session.process.send_signal(signal.SIGINT)
        session.process.send_signal(signal.SIGTERM)
        self.assertIn(session.end(), (130, 143))
        self.assertTrue(session.is_restored())

    def test_modes_come_back_while_we_are_stopped(self):
        session = self.ready("read x; echo got-$x; stty size")
        session.process.send_signal(signal.SIGTSTP)
        # Its parent, this process, is told as a shell would be.
        self.assertEqual(os.waitpid(session.process.pid, os.WUNTRACED)[1] & 0xFF, 0x7F)
        self.assertTrue(session.is_restored())
        session.resize(40, 120)
        session.process.send_signal(signal.SIGCONT)
        wait_until(session.is_raw, "raw mode after SIGCONT")
        session.type(b"me\r")
        self.assertEqual(session.end(), 0)
        self.assertIn(b"got-me\r\n40 120\r\n", session.seen)
        self.assertTrue(session.is_restored())

    def test_a_hang_up_ends_the_program(self):
        session = self.ready("exec sleep 100")
        replacement = os.open(os.devnull, os.O_RDWR)
        os.dup2(replacement, session.master)  # Closes the one end that there is.
        os.close(replacement)
        self.assertEqual(session.process.wait(timeout=DEADLINE), 129)
        self.assert_no_orphans()

    def test_the_terminal_of_ours_is_not_the_programs(self):
        session = self.shell(
            "for n in 0 1 2; do readlink /proc/self/fd/$n; done; ls /dev/pts | tr '\\n' ' '", "-it"
        )
        self.assertEqual(session.end(), 0)
        self.assertEqual(session.seen, b"/dev/pts/0\r\n" * 3 + b"0 ptmx ")

    def test_input_without_a_terminal_leaves_ours_alone(self):
        session = self.shell("cat; echo ready; exec sleep 100", "-t")
        session.await_text(b"ready")
        self.assertTrue(session.is_restored())
        session.type(b"\x03")
        self.assertEqual(session.end(), 130)


class WithoutATerminal(ProgramTest):
    def test_interactive_is_refused(self):
        answer = self.shell("true", "-it")
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "the input device is not a TTY")

    def test_the_program_may_have_one_all_the_same(self):
        answer = self.shell("tty; stty size; echo oops >&2; cat", "-t")
        self.assert_result(answer, 0, b"/dev/pts/0\r\n24 80\r\noops\r\n", b"")


if __name__ == "__main__":
    unittest.main()
