#!/usr/bin/env python3
"""Checks the probes themselves: what they say is what is so.

Every probe is run where there is no sandbox, in a directory of its own, with attempts that change nothing.

Usage: probes_test.py DIRECTORY
  DIRECTORY  of the built probes
"""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parent / "README.md"
NAMES = tuple(re.findall(r"^## (\S+)$", README.read_text(), re.MULTILINE))
PATIENCE_S = 60

probes = Path()
Line = dict[str, Any]


class Probe(unittest.TestCase):
    def setUp(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.directory = Path(self._directory.name)

    def run_probe(self, name: str, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [probes / name, *words],
            input=stdin,
            capture_output=True,
            cwd=self.directory,
            timeout=PATIENCE_S,
            check=False,
        )

    def lines(self, name: str, *words: str) -> list[Line]:
        done = self.run_probe(name, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def line(self, name: str, *words: str) -> Line:
        lines = self.lines(name, *words)
        self.assertEqual(len(lines), 1)
        return lines[0]

    def assert_says(self, line: Line, **members: Any) -> None:
        self.assertEqual({name: line.get(name) for name in members}, members, line)


class Protocol(Probe):
    def test_every_attempt_is_documented(self) -> None:
        sections = dict(re.findall(r"^## (\S+)$(.*?)(?=^## |\Z)", README.read_text(), re.MULTILINE | re.DOTALL))
        for name in NAMES:
            documented = set(" ".join(re.findall(r"`([^`]+)`", sections[name])).split())
            kinds = "user mnt pid net ipc uts cgroup time".split()
            documented |= {word.replace("KIND", kind) for word in documented for kind in kinds}
            attempts = self.run_probe(name).stdout.decode().split()
            self.assertGreater(len(attempts), 5)
            self.assertEqual(set(attempts) - documented, set(), name)

    def test_an_unknown_attempt_is_an_error_of_use(self) -> None:
        for name in NAMES:
            done = self.run_probe(name, "no-such-attempt")
            self.assertEqual((done.returncode, done.stdout), (2, b""), name)

    def test_a_missing_argument_is_an_error_of_use(self) -> None:
        self.assertEqual(self.run_probe("files", "rename", "from").returncode, 2)
        self.assertEqual(self.run_probe("memory", "touch", "1m").returncode, 2)

    def test_attempts_are_made_in_order_under_their_names(self) -> None:
        first, second = self.lines("files", "mine=open", "absent", "--", "access", "/")
        self.assert_says(first, attempt="mine", args=["absent"], result="denied", errno="ENOENT")
        self.assert_says(second, attempt="access", args=["/"], result="ok", errno=None)

    def test_any_bytes_come_out_as_json(self) -> None:
        content = b'"\\\x00\x1f\xff\xc3\xa9'
        (self.directory / "file").write_bytes(content)
        self.assertEqual(self.line("files", "open", "file")["content"], '"\\\x00\x1f\u00ffé')


class Attempts(Probe):
    def test_every_route_to_a_file_that_is_there_reads_it(self) -> None:
        path = self.directory / "canary"
        path.write_text("canary")
        routes = ("open", "openat", "openat2", "open-path", "dotdot", "symlink", "hardlink", "proc-self-root")
        words = [word for route in routes for word in ("--", route, str(path))][1:]
        for line in self.lines("files", *words):
            self.assert_says(line, result="ok", content="canary")
        self.assertEqual(os.listdir(self.directory), ["canary"])

    def test_harmless_changes_leave_a_file_as_it_was(self) -> None:
        path = self.directory / "canary"
        path.write_text("canary")
        before = path.stat()
        acts = ("chmod", "chown", "utimens", "truncate", "open-for-writing", "open-for-append")
        for line in self.lines("files", *[word for act in acts for word in ("--", act, str(path))][1:]):
            self.assert_says(line, result="ok")
        after = path.stat()
        self.assertEqual(
            (before.st_mode, before.st_uid, before.st_mtime_ns, before.st_size, before.st_ino),
            (after.st_mode, after.st_uid, after.st_mtime_ns, after.st_size, after.st_ino),
        )

    def test_a_listener_is_reached_and_its_absence_denied(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = str(listener.getsockname()[1])
            for route in ("tcp", "tcp-orphan", "tcp-thread", "tcp-mapped"):
                self.assert_says(self.line("sockets", route, "127.0.0.1", port), attempt=route, result="ok")
        refused = self.line("sockets", "tcp", "127.0.0.1", port)
        self.assert_says(refused, result="denied", errno="ECONNREFUSED", answer=None)

    def test_own_children_can_be_traced(self) -> None:
        for line in self.lines("ptrace", "child", "--", "seize-child", "--", "read-child-memory"):
            self.assert_says(line, result="ok")

    def test_a_process_that_is_not_there_is_denied(self) -> None:
        for line in self.lines("signals", "zero", "999999999", "--", "zero-pidfd", "999999999"):
            self.assert_says(line, result="denied", errno="ESRCH")

    def test_identity_is_that_of_the_process(self) -> None:
        ids, mask, session = self.lines("identity", "ids", "--", "umask", "--", "session")
        self.assert_says(ids, uid=os.getuid(), euid=os.geteuid(), gid=os.getgid())
        self.assert_says(mask, umask=f"{self._umask():04o}")
        self.assert_says(session, ppid=os.getpid(), sid=os.getsid(0), leader=False)
        every = {line["attempt"] for line in self.lines("identity", "every")}
        self.assertLessEqual({"ids", "rlimits", "capabilities", "environment", "terminal"}, every)

    @staticmethod
    def _umask() -> int:
        mask = os.umask(0o22)
        os.umask(mask)
        return mask

    def test_ordinary_system_calls_work_here(self) -> None:
        for line in self.lines("syscalls", "ok-statx", "--", "ok-futex", "--", "ok-vfork", "--", "ok-memfd"):
            self.assert_says(line, result="ok")

    def test_every_system_call_has_a_verdict(self) -> None:
        lines = self.lines("syscalls", "every")
        self.assertGreater(len(lines), 100)
        self.assertEqual({line["result"] for line in lines} - {"ok", "denied", "error"}, set())


class Loads(Probe):
    def test_a_flood_has_its_bytes_and_their_sum(self) -> None:
        wanted = b"".join(b"%015d\n" % number for number in range(70000))[:1000003]
        done = self.run_probe("output", "flood-stdout", "1000003")
        self.assertEqual(done.stdout, wanted)
        line = json.loads(done.stderr)
        self.assert_says(line, bytes=1000003, sha256=hashlib.sha256(wanted).hexdigest())

    def test_input_is_echoed_with_its_sum(self) -> None:
        for size in (0, 1, 55, 56, 63, 64, 65, 100000):
            data = bytes(index % 251 for index in range(size))
            done = self.run_probe("output", "echo", stdin=data)
            self.assertEqual(done.stdout, data)
            self.assert_says(json.loads(done.stderr), bytes=size, sha256=hashlib.sha256(data).hexdigest())

    def test_cpu_time_is_spent(self) -> None:
        for words in (("burn", "60"), ("burn-ignoring", "60"), ("threads", "2", "30"), ("children", "2", "30"), ("sequence", "2", "30")):
            self.assertGreaterEqual(self.line("cpu", *words)["cpuMs"], 55, words)
        self.assertLess(self.line("cpu", "sleep", "60")["cpuMs"], 30)

    def test_memory_is_touched_and_given_back(self) -> None:
        for kind in ("touch", "shared", "memfd", "tmp", "cache"):
            self.assert_says(self.line("memory", kind, "3000000"), result="ok", bytes=3000000)
        self.assert_says(self.line("memory", "reserve", str(1 << 40)), result="ok")
        self.assertEqual(os.listdir(self.directory), [])

    def test_files_without_names_take_room_as_long_as_they_are_open(self) -> None:
        for words in (("fill-deleted", "gone"), ("fill-unnamed", ".")):
            self.assert_says(self.line("files", *words, "300000", "0"), result="ok", written=300000)
        self.assertEqual(os.listdir(self.directory), [])

    def test_files_that_stay_are_there_afterwards(self) -> None:
        self.assert_says(self.line("files", "keep-many", ".", "7"), result="ok", made=7)
        self.assertEqual(len(os.listdir(self.directory)), 7)
        (self.directory / "below").mkdir()
        self.assert_says(self.line("files", "fill-at-once", "below", "3", "5000"), result="ok", filled=3)
        self.assertEqual([path.stat().st_size for path in (self.directory / "below").iterdir()], [5000] * 3)
        self.assert_says(self.line("memory", "leave", "kept", "3000"), result="ok", bytes=3000)
        self.assertEqual((self.directory / "kept").stat().st_size, 3000)

    def test_processes_are_counted(self) -> None:
        for kind in ("fork", "chain", "fast", "threads", "zombies"):
            self.assert_says(self.line("forks", kind, "7"), result="ok", made=7)

    def test_programs_end_as_they_were_told(self) -> None:
        self.assertEqual(self.run_probe("forks", "exit", "9").returncode, 9)
        self.assertEqual(self.run_probe("forks", "thread-exit", "9").returncode, 9)
        self.assertEqual(self.run_probe("signals", "die", "15").returncode, -15)

    def test_clocks_run(self) -> None:
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000
        for line, due in zip(self.lines("clocks", "ticks", "2", "20"), (20, 40), strict=True):
            self.assertGreaterEqual(line["monotonicMs"] - before, due)
        self.assertEqual(self.line("clocks", "steps", "5")["backwards"], 0)


if __name__ == "__main__":
    probes = Path(sys.argv.pop(1)).resolve()
    unittest.main()
