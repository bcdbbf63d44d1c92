"""Whatever a scenario leaves makes the suite fail, and is named."""

import contextlib
import ctypes
import io
import os
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from runner.subreaper import can_make_user_namespace

from suite import main, residue
from suite.stage import Stage

_LIBC = ctypes.CDLL(None, use_errno=True)
_IPC_PRIVATE, _IPC_RMID = 0, 0


def outcome_of(scenario: Callable[[Stage], None]) -> tuple[int, str]:
    """Exit code and output of the suite with this one scenario."""
    told = io.StringIO()
    with (
        mock.patch.dict(main.SCENARIOS, {"leaves": scenario}, clear=True),
        mock.patch.object(main, "build", lambda prefix, into: into),
        mock.patch.object(residue, "GRACE_S", 0.3),
        contextlib.redirect_stdout(told),
    ):
        return main.main(["--prefix", "/", "--only", "leaves"]), told.getvalue()


class Leaving(unittest.TestCase):
    def expect_named(self, scenario: Callable[[Stage], None], *names: str) -> None:
        status, told = outcome_of(scenario)
        self.assertEqual(status, main.FAILED, told)
        for name in names:
            self.assertIn(f"left behind: {name}", told)


class Residue(Leaving):
    def test_nothing(self) -> None:
        status, told = outcome_of(lambda stage: None)
        self.assertEqual(status, main.PASSED, told)

    def test_a_process_whose_parent_has_ended(self) -> None:
        started: list[str] = []

        def leave(stage: Stage) -> None:
            ran = stage.run("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
            started.append(ran.text.strip())

        self.addCleanup(lambda: subprocess.run(["kill", "-9", *started], check=True))
        self.expect_named(leave, "process ")

    def test_a_directory_and_a_lock_of_a_sandbox(self) -> None:
        with tempfile.TemporaryDirectory() as directory:

            def leave(stage: Stage) -> None:
                Path(directory, "sbx_0123456789ab").mkdir()
                Path(directory, "sbx_0123456789ab.lock").touch()
                Path(directory, "uids").touch()

            with mock.patch.object(residue, "state_directories", lambda: [Path(directory)]):
                self.expect_named(
                    leave,
                    f"file {directory}/sbx_0123456789ab",
                    f"file {directory}/sbx_0123456789ab.lock",
                )

    def test_a_system_v_object(self) -> None:
        made: list[int] = []

        def leave(stage: Stage) -> None:
            made.append(_LIBC.shmget(_IPC_PRIVATE, 4096, 0o600))

        self.addCleanup(lambda: _LIBC.shmctl(made[0], _IPC_RMID, None))
        self.expect_named(leave, "System V shm ")

    @unittest.skipUnless(can_make_user_namespace(), "this user cannot make namespaces")
    def test_a_namespace_with_a_process(self) -> None:
        for option, kind in (("--net", "net"), ("--mount", "mnt"), ("--pid", "pid"), ("--user", "user")):
            with self.subTest(kind):
                self.expect_namespace(kind, "--user", "--map-root-user", option)

    def expect_namespace(self, kind: str, *options: str) -> None:
        started: list[subprocess.Popen[bytes]] = []

        def leave(stage: Stage) -> None:
            words = ["unshare", *options, "--fork", "--kill-child", "sh", "-c", "echo up; exec sleep 60"]
            started.append(subprocess.Popen(words, stdout=subprocess.PIPE))
            pipe = started[0].stdout
            stage.check(pipe is not None and pipe.readline() == b"up\n", "there is no namespace")

        try:
            self.expect_named(leave, f"namespace {kind}:[", "process ")
        finally:
            for process in started:
                process.kill()
                process.communicate()


@unittest.skipUnless(os.geteuid() == 0, "only root can leave these")
class ResidueOfRoot(Leaving):
    """Names are such that no other test of this host takes for its own what is there for a moment."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def later(self, *words: str) -> None:
        self.addCleanup(lambda: subprocess.run(words, check=True))

    def test_a_mount(self) -> None:
        here = str(self.directory)
        self.later("umount", here)
        self.expect_named(lambda stage: self.must(stage, "mount", "--bind", here, here), f"mount {here}")

    def test_a_namespace_without_a_process(self) -> None:
        kept = self.directory / "net"
        kept.touch()
        self.later("umount", str(kept))
        self.expect_named(
            lambda stage: self.must(stage, "unshare", f"--net={kept}", "true"),
            f"mount {kept} (nsfs",
            "namespace net:[",
        )

    def test_a_control_group_in_every_hierarchy(self) -> None:
        hierarchies = [
            line.split()[4]
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if " - cgroup" in line
        ]
        groups = [f"{hierarchy}/left-sbx_{os.getpid():012x}" for hierarchy in hierarchies]
        self.assertTrue(groups)
        for group in groups:
            with self.subTest(group):
                try:
                    self.expect_named(
                        lambda stage, group=group: os.mkdir(group), f"control group {group}"
                    )
                finally:
                    os.rmdir(group)

    @unittest.skipUnless(Path("/dev/loop-control").exists(), "this host has no loop devices")
    def test_a_loop_device(self) -> None:
        image = self.directory / "image"
        image.write_bytes(bytes(1 << 20))
        found: list[str] = []

        def leave(stage: Stage) -> None:
            found.append(stage.run("losetup", "--find", "--show", str(image)).text.strip())
            stage.check(found[0] != "", "there is no loop device")

        try:
            self.expect_named(leave, "loop device ")
        finally:
            subprocess.run(["losetup", "--detach", *found], check=True)

    def must(self, stage: Stage, *words: str) -> None:
        stage.equal(" ".join(words), stage.run(*words).status, 0)
