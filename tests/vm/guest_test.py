import contextlib
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

import kernels
import machine

LONG_S = 60.0  # Far above what it takes to see that a guest must end.
GUEST = (sys.executable, str(Path(__file__).resolve().parent / "guest.py"), "run")
# What the guest looks like from inside, as one document.
LOOK = """
import importlib.util, json, os, socket, subprocess
canary, listener = {canary!r}, socket.create_server(("127.0.0.1", 0))
socket.create_connection(listener.getsockname())
bubblewrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
print(json.dumps({{
    "uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),
    "command line": open("/proc/cmdline").read().split(),
    "release": os.uname().release,
    "network devices": [name for _, name in socket.if_nameindex()],
    "mounts": {{words[1]: words[2] for words in map(str.split, open("/proc/mounts"))}},
    "file systems": open("/proc/filesystems").read().split(),
    "shadow": os.access("/etc/shadow", os.R_OK),
    "jsonschema": importlib.util.find_spec("jsonschema") is not None,
    "tree": open({tree!r} + "/below/file").read(),
    "canary": os.path.exists(canary),
    "bubblewrap": subprocess.run(bubblewrap).returncode,
    "cgroup": os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK),
}}))
"""
ENDING = """
mkdir -p "$GUEST_RESULTS/below"
printf 'a\\000b' >"$GUEST_RESULTS/below/bytes"
ln -s /etc/passwd "$GUEST_RESULTS/link"
echo spoken >&2
sleep 1000 &
exit 7
"""


def run(request: machine.Request) -> tuple[machine.Ended, bytes, bytes]:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    return machine.run(request, stdout, stderr), stdout.getvalue(), stderr.getvalue()


def children(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


@contextlib.contextmanager
def open_process(pid: int) -> Iterator[int | None]:
    """A descriptor that is readable once the process has ended; nothing where it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Looking(unittest.TestCase):
    """One guest for all of a class: what it looks like, and how it ended."""

    user = "user"
    kernel = kernels.DEFAULT

    @classmethod
    def setUpClass(cls) -> None:
        try:
            kernels.get(cls.kernel)
        except kernels.NoKernel as missing:
            if cls.kernel == kernels.DEFAULT:
                raise
            # A stable Debian has the newer one only where its backports are configured; the
            # summary of the run counts what was left out.
            raise unittest.SkipTest(f"no kernel {cls.kernel}: {missing}") from missing
        place = tempfile.TemporaryDirectory(prefix="palmshed-vm-test-")
        cls.addClassCleanup(place.cleanup)
        tree, cls.results = Path(place.name, "tree"), Path(place.name, "results")
        (tree / "below").mkdir(parents=True)
        (tree / "below" / "file").write_text("of the tree")
        canary = Path(place.name, "canary")
        canary.touch()
        script = LOOK.format(canary=str(canary), tree=str(tree))
        request = machine.Request(
            args=("/bin/sh", "-c", f"python3.11 -c '{script.replace(chr(39), chr(34))}'\n{ENDING}"),
            trees=(tree,),
            kernel=cls.kernel,
            user=cls.user,
            results=cls.results,
        )
        cls.ended, cls.stdout, cls.stderr = run(request)
        cls.seen = json.loads(cls.stdout)


class OrdinaryUserTest(Looking):
    def test_exit_code_and_both_streams_come_out(self) -> None:
        self.assertEqual(self.ended, machine.Ended(7))
        self.assertEqual(self.stderr, b"spoken\n")

    def test_results_come_out_without_links(self) -> None:
        self.assertEqual((self.results / "below" / "bytes").read_bytes(), b"a\0b")
        self.assertFalse(os.path.lexists(self.results / "link"))

    def test_it_is_marked_as_one_to_be_thrown_away(self) -> None:
        self.assertIn("palmshed.throwaway", self.seen["command line"])
        self.assertNotIn("palmshed.throwaway", Path("/proc/cmdline").read_text().split())

    def test_the_only_network_device_is_the_loopback(self) -> None:
        self.assertEqual(self.seen["network devices"], ["lo"])

    def test_the_user_is_an_ordinary_one(self) -> None:
        seen = [self.seen[fact] for fact in ("uid", "gid", "groups", "shadow", "cgroup")]
        self.assertEqual(seen, [1000, 1000, [], False, False])

    def test_trees_are_inside_and_nothing_beside_them(self) -> None:
        self.assertEqual(self.seen["tree"], "of the tree")
        self.assertFalse(self.seen["canary"])

    def test_it_has_what_the_conformance_kit_and_sandboxes_need(self) -> None:
        self.assertTrue(self.seen["jsonschema"])
        self.assertEqual(self.seen["bubblewrap"], 0)
        self.assertIn("overlay", self.seen["file systems"])
        mounted = {"/tmp": "tmpfs", "/sys/fs/cgroup": "cgroup2", "/proc": "proc", "/sys": "sysfs"}
        self.assertLessEqual(mounted.items(), self.seen["mounts"].items())

    def test_the_kernel_is_the_one_that_was_asked_for(self) -> None:
        self.assertRegex(self.seen["release"], r"^6\.1\.")


class RootOfANewerKernelTest(Looking):
    user = "root"
    kernel = "cloud-6.12"

    def test_the_kernel_is_the_one_that_was_asked_for(self) -> None:
        self.assertRegex(self.seen["release"], r"^6\.12\.")

    def test_root_is_root(self) -> None:
        seen = [self.seen[fact] for fact in ("uid", "gid", "shadow", "cgroup")]
        self.assertEqual(seen, [0, 0, True, True])

    def test_it_is_equipped_as_the_other(self) -> None:
        self.assertEqual(self.ended, machine.Ended(7))
        self.assertEqual(self.seen["bubblewrap"], 0)
        self.assertEqual(self.seen["network devices"], ["lo"])
        self.assertIn("palmshed.throwaway", self.seen["command line"])


class EndingTest(unittest.TestCase):
    def test_a_command_that_hangs_is_ended_and_what_it_had_comes_out(self) -> None:
        with tempfile.TemporaryDirectory(prefix="palmshed-vm-test-") as place:
            script = 'trap "" TERM INT; echo before; echo kept >$GUEST_RESULTS/kept; sleep 1000'
            results = Path(place, "results")
            hanging = machine.Request(args=("sh", "-c", script), timeout_s=3, results=results)
            ended, stdout, _ = run(hanging)
            self.assertEqual(ended, machine.Ended(machine.LATE, late=True))
            self.assertEqual(stdout, b"before\n")
            self.assertEqual((results / "kept").read_text(), "kept\n")

    def test_a_guest_that_does_not_even_boot_in_time_is_ended(self) -> None:
        began = time.monotonic()
        never = machine.Request(args=("true",), timeout_s=0.2, around_s=0)
        self.assertEqual(run(never)[0], machine.Ended(machine.LATE, late=True))
        self.assertLess(time.monotonic() - began, LONG_S)

    def test_a_guest_that_goes_off_under_the_command_is_no_success(self) -> None:
        with self.assertRaisesRegex(machine.GuestFailed, "without a word"):
            run(machine.Request(args=("busybox", "poweroff", "-f")))

    def test_the_guest_ends_with_the_tool_however_that_ends(self) -> None:
        with tempfile.TemporaryDirectory(prefix="palmshed-vm-test-") as place:
            command = [*GUEST, "--", "sh", "-c", "echo ready; sleep 1000"]
            tool = subprocess.Popen(
                command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": place}
            )
            with tool:
                self.assertEqual(tool.stdout and tool.stdout.readline(), b"ready\n")
                machines = children(tool.pid)
                self.assertEqual(len(machines), 1)
                tool.kill()
        with open_process(machines[0]) as ended:
            self.assertTrue(ended is None or select.select([ended], [], [], LONG_S)[0])

    def test_a_program_that_is_not_there_is_an_error_of_the_tool(self) -> None:
        command = [*GUEST, "--", "/no/such/program"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (machine.BROKEN, ""))
        self.assertIn("/no/such/program: No such file or directory", ended.stderr)


if __name__ == "__main__":
    unittest.main()
