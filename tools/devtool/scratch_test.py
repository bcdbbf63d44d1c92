"""The file system of the tests' own: where it is, what stays of it, and what happens without one."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from devtool import scratch


@unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
class ScratchTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.checkout = Path(directory.name)
        self.folder = self.checkout / "build"
        (self.folder / "scratch").mkdir(parents=True)

    def run_within(self, script: str) -> "subprocess.CompletedProcess[str]":
        command = scratch.within(["sh", "-ec", script], self.checkout, self.folder)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_is_one_of_its_own_with_a_journal(self) -> None:
        said = self.run_within(
            "stat --format=%d /tmp /var/tmp /var/lib/palmshed; find /proc/fs/jbd2 -name 'loop*'; : >/tmp/x; exit 7"
        )
        self.assertEqual(said.returncode, 7, said.stderr)
        devices, journals = said.stdout.split()[:3], said.stdout.split()[3:]
        outside = str(os.stat("/var/tmp").st_dev)
        self.assertEqual(len(set(devices)), 1, devices)
        self.assertNotEqual(devices[0], outside)
        self.assertTrue(journals, "no journal of a loop device")

    def test_nothing_stays(self) -> None:
        said = self.run_within(
            "touch /tmp/palmshed-scratch-x /var/lib/palmshed/x; stat --format=%a /var/lib/palmshed; "
            "grep -q build/scratch /proc/mounts"
        )
        self.assertEqual((said.returncode, said.stdout), (0, "700\n"), said.stderr)
        for made in ("/tmp/palmshed-scratch-x", "/var/lib/palmshed/x"):
            self.assertFalse(os.path.exists(made), made)
        self.assertNotIn(str(self.folder), Path("/proc/mounts").read_text())
        self.assertEqual(os.listdir(self.folder), ["scratch"])
        self.assertEqual(os.listdir(self.folder / "scratch"), [])

    def test_checkout_below_it_stays_in_place(self) -> None:
        (self.checkout / "source").write_text("here")
        said = self.run_within(f"cat {self.checkout}/source; echo built > {self.folder}/made")
        self.assertEqual((said.returncode, said.stdout), (0, "here"), said.stderr)
        self.assertEqual((self.folder / "made").read_text(), "built\n")

    def test_one_that_cannot_be_mounted_is_told_apart(self) -> None:
        (self.folder / "scratch").rmdir()
        said = self.run_within("echo ran")
        self.assertEqual((said.returncode, said.stdout), (scratch.UNAVAILABLE, ""))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
