#!/usr/bin/env python3
"""Nothing stays behind: no process, no mount, no file, no control group, however a run ends."""

import json
import os
import signal
import unittest
from pathlib import Path

from program import (
    DEADLINE,
    ProgramTest,
    groups_naming,
    paths_naming,
    read_until,
    sandbox_in,
    wait_until,
)


def mounts_of_ours():
    """What other programs mount meanwhile does not matter."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "palmshed" in line or "sbx_" in line]


class Residue(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment["SANDBOX_LOG"] = "debug"
        self.mounts = mounts_of_ours()

    def assert_nothing_left(self, log):
        self.assert_no_orphans()
        self.assertEqual(paths_naming(sandbox_in(log), self.state), [])
        self.assertEqual(groups_naming(sandbox_in(log)), [])
        self.assertEqual(mounts_of_ours(), self.mounts)

    def test_a_live_sandbox_can_be_seen(self):
        """The control: what the other tests look for is there while the program runs."""
        process = self.start("run", "--", "sh", "-c", "echo x >f; echo ready; sleep 60")
        read_until(process.stdout, b"ready\n")
        log = read_until(process.stderr, b"exec.start")
        self.assertNotEqual(paths_naming(sandbox_in(log), self.state), [])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE), 143)
        self.assert_nothing_left(log)

    def limits_by_groups(self):
        document = json.loads(self.palmshed("doctor", "--format", "json").stdout)
        return [
            one["name"]
            for one in document["controls"]
            if one["works"] and one["mechanism"].startswith("cgroup")
        ]

    def test_a_live_sandbox_with_limits_has_groups_where_there_are_any(self):
        """The control of the next."""
        if not self.limits_by_groups():
            self.skipTest("no limit is enforced by control groups here")
        process = self.start("run", "-m", "64m", "--", "sh", "-c", "echo ready; sleep 60")
        read_until(process.stdout, b"ready\n")
        log = read_until(process.stderr, b"exec.start")
        self.assertNotEqual(groups_naming(sandbox_in(log)), [])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE), 143)
        self.assert_nothing_left(log)

    def test_after_every_kind_of_end_under_limits(self):
        limits = ("-m", "64m", "--cpu-time", "10s", "--pids-limit", "64", "--disk", "64m")
        for flags, command, code in (
            ((), "exit 3", 3),
            ((), "sleep 60 & setsid sleep 60 & exit 5", 5),
            (("--timeout", "300ms"), "sleep 60", 124),
            (("-m", "32m"), "python3 -c 'bytearray(300 << 20)'; sleep 60", 137),
            (("--cpu-time", "200ms"), "while :; do :; done", 137),
        ):
            with self.subTest(command):
                chosen = dict(zip(limits[::2], limits[1::2])) | dict(zip(flags[::2], flags[1::2]))
                answer = self.shell(command, *[word for pair in chosen.items() for word in pair])
                self.assertEqual(answer.returncode, code, answer)
                self.assert_nothing_left(answer.stderr)

    def test_after_every_kind_of_end(self):
        litter = "mkdir -p a/b && echo x >a/b/c && mkfifo f && ln -s / l && chmod 0 a; "
        for flags, command, code in (
            ((), "true", 0),
            ((), "exit 3", 3),
            ((), "kill -9 $$", 137),
            (("--timeout", "300ms"), "sleep 60", 124),
            ((), "sleep 60 & setsid sleep 60 & exit 5", 5),
        ):
            with self.subTest(command):
                answer = self.shell(litter + command, *flags)
                self.assertEqual(answer.returncode, code, answer)
                self.assert_nothing_left(answer.stderr)

    def test_after_a_program_that_cannot_start(self):
        answer = self.run_program("--", "nosuch-program")
        self.assertEqual(answer.returncode, 127)
        self.assert_nothing_left(answer.stderr)

    def test_after_we_were_killed_the_next_run_collects(self):
        limits = ("-m", "64m", "--disk", "64m")
        process = self.start("run", *limits, "--", "sh", "-c", "echo x >f; echo ready; sleep 60")
        read_until(process.stdout, b"ready\n")
        sandbox = sandbox_in(read_until(process.stderr, b"exec.start"))
        self.assertNotEqual(paths_naming(sandbox, self.state), [])
        process.kill()  # It cannot clean up itself.
        process.wait()
        self.assert_no_orphans()

        def the_next_run_leaves_nothing():
            answer = self.run_program("--", "true")
            self.assertEqual(answer.returncode, 0, answer)
            return paths_naming(sandbox, self.state) == [] and groups_naming(sandbox) == []

        # One run is enough unless another engine of this user is collecting the same at the time.
        wait_until(the_next_run_leaves_nothing, "the collection of what the killed run left")
        self.assertEqual(mounts_of_ours(), self.mounts)

    def test_descriptors_of_ours_do_not_reach_the_program(self):
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        answer = self.run_program("--", "ls", "/proc/self/fd", close_fds=False)
        os.close(reader)
        os.close(writer)
        # ls has one more open: the directory that it reads.
        self.assertEqual(answer.stdout.split(), [b"0", b"1", b"2", b"3"])


if __name__ == "__main__":
    unittest.main()
