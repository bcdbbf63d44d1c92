#!/usr/bin/env python3
"""Signals to the program, and what the sandboxed one gets to see of them. C021, C077."""

import json
import os
import signal
import subprocess
import time
import unittest

from program import (
    DEADLINE,
    SIGNALS,
    ProgramTest,
    paths_naming,
    queued,
    read_until,
    sandbox_in,
    wait_until,
)

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.2; done"


class Stop(ProgramTest):
    def test_signals_cancel_and_name_themselves(self):
        for number, code in SIGNALS.items():
            with self.subTest(number):
                process = self.started("echo ready; sleep 60")
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=DEADLINE), code)
                self.assertIn(f"cancelled by {number.name}".encode(), process.stderr.read())
                self.assert_no_orphans()

    def test_the_program_can_clean_up(self):
        process = self.started("trap 'echo bye; exit 3' TERM; echo ready; sleep 60 & wait")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout, b"bye\n")
        self.assertEqual(process.wait(timeout=DEADLINE), 130)

    def test_a_stubborn_program_is_killed_after_a_second(self):
        process = self.started(STUBBORN)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE), 143)
        self.assertGreaterEqual(time.monotonic() - start, 0.9)
        self.assertLess(time.monotonic() - start, 5)
        self.assert_no_orphans()

    def test_a_second_signal_ends_it_at_once(self):
        process = self.started(STUBBORN)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        # Pending signals of one kind merge: the second must be another, or come later.
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(timeout=DEADLINE), (130, 143))
        self.assertLess(time.monotonic() - start, 0.9)
        self.assert_no_orphans()

    def test_a_signal_to_the_whole_group_is_as_good(self):
        """What a terminal does on ^C."""
        self.environment["SANDBOX_LOG"] = "debug"
        process = self.started("echo ready; sleep 60", start_new_session=True)
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(timeout=DEADLINE), 130)
        log = process.stderr.read()
        self.assertIn(b"status=cancelled", log)
        self.assertEqual(paths_naming(sandbox_in(log), self.state), [])
        self.assert_no_orphans()

    def test_a_reader_that_does_not_read_holds_nobody_up(self):
        process = self.start("run", "--", "yes")
        wait_until(lambda: queued(process.stdout) > 32768, "a pipe that is nearly full")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=DEADLINE), 130)

    def test_nothing_leaves_the_sandboxes_own_end(self):
        process = self.started("echo ready; sleep 0.2; exit 9")
        self.assertEqual(process.wait(timeout=DEADLINE), 9)
        with self.assertRaises(ProcessLookupError):
            os.kill(process.pid, 0)


class Killed(ProgramTest):
    """C021: a run that was cut off never looks like one that succeeded."""

    def test_is_no_success_and_leaves_no_document(self):
        document = self.directory / "result.json"
        document.write_text('{"exitCode": 0, "status": "completed"}')
        process = self.started("echo ready; sleep 60; exit 0", "--json", str(document))
        process.kill()
        self.assertEqual(process.wait(timeout=DEADLINE), -signal.SIGKILL)
        with self.assertRaises(json.JSONDecodeError):
            json.loads(document.read_text())
        self.assert_no_orphans()

    def test_the_program_dies_with_it(self):
        process = self.started("echo ready; sleep 60", stdin=subprocess.DEVNULL)
        process.kill()
        process.wait()
        self.assert_no_orphans()
        self.assertEqual(process.stdout.read(), b"")  # End of file: nobody holds the pipe.


class CleanSlate(ProgramTest):
    """C077: the program starts with no signal ignored or blocked, whatever we started with."""

    COMMAND = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    CLEAN = b"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"

    def test_signals_are_as_new(self):
        self.assert_result(self.run_program("--", *self.status()), 0, self.CLEAN, b"")

    @staticmethod
    def status():
        return ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]

    def dirty(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM})

    def test_they_are_even_if_ours_are_not(self):
        options = {"preexec_fn": self.dirty, "restore_signals": False}
        control = subprocess.run(
            self.status(), capture_output=True, timeout=DEADLINE, check=True, **options
        )
        self.assertNotEqual(control.stdout, self.CLEAN)  # Without us they are inherited.
        answer = self.run_program("--", *self.status(), **options)
        self.assert_result(answer, 0, self.CLEAN, b"")

    def test_pipelines_inside_end_as_they_should(self):
        command = "yes | head -1 >/dev/null; echo ${PIPESTATUS[@]}"
        answer = self.run_program(
            "--", "bash", "-c", command, preexec_fn=self.dirty, restore_signals=False
        )
        self.assert_result(answer, 0, b"141 0\n", b"")

    def test_what_is_ignored_at_our_start_stays_ignored(self):
        process = self.started(
            "echo ready; read x; echo survived",
            "-i",
            stdin=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        process.send_signal(signal.SIGHUP)
        process.stdin.write(b"\n")
        read_until(process.stdout, b"survived\n")
        self.assertEqual(process.wait(timeout=DEADLINE), 0)


if __name__ == "__main__":
    unittest.main()
