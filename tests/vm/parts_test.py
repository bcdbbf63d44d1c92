"""What needs no guest: the archive, the order of modules, the choice of a kernel, and results taken with care."""

import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import archive
import guest
import image
import kernels
import machine
import modules


class PlaceTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="palmshed-vm-test-")
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)


class ArchiveTest(PlaceTest):
    def test_busybox_unpacks_what_was_packed(self) -> None:
        (self.place / "program").write_bytes(b"#!/bin/sh\n")
        (self.place / "program").chmod(0o750)
        with (self.place / "packed").open("wb") as stream:
            packed = archive.Archive(stream)
            packed.copy(self.place / "program", "/usr/bin/program")
            packed.text("/usr/bin/program", "the first one stays")
            packed.link("/bin", "usr/bin")
            packed.close()
        target = self.place / "target"
        target.mkdir()
        with (self.place / "packed").open("rb") as stream:
            unpack = ["busybox", "cpio", "-i", "-d"]
            subprocess.run(unpack, stdin=stream, cwd=target, check=True, capture_output=True)
        self.assertEqual((target / "bin" / "program").read_bytes(), b"#!/bin/sh\n")
        self.assertEqual((target / "usr/bin/program").stat().st_mode & 0o777, 0o750)

    def test_nothing_lies_below_a_link(self) -> None:
        packed = archive.Archive(io.BytesIO())
        packed.link("/bin", "usr/bin")
        with self.assertRaisesRegex(ValueError, "no directory"):
            packed.text("/bin/program", "lost")


class TreeTest(PlaceTest):
    def build(self, tree: Path) -> None:
        kernel = kernels.Kernel(self.place, self.place)
        image.build(io.BytesIO(), kernel, [tree], {})

    def test_one_that_is_not_there_is_an_error(self) -> None:
        with self.assertRaisesRegex(image.NoImage, "there is no"):
            self.build(self.place / "missing")

    def test_one_that_a_mount_would_hide_is_an_error(self) -> None:
        with self.assertRaisesRegex(image.NoImage, "hidden"):
            self.build(Path("/dev/shm"))


class ModulesTest(PlaceTest):
    def test_each_comes_after_what_it_depends_on(self) -> None:
        below = self.place / "kernel" / "drivers"
        below.mkdir(parents=True)
        depends = {
            "virtio_pci": "virtio-ring,virtio",
            "virtio-ring": "virtio",
            "virtio": "",
            "unasked": "",
        }
        for name, others in depends.items():
            information = f"license=GPL\0depends={others}\0name={name}\0"
            (below / f"{name}.ko").write_bytes(b"\x7fELF\0" + information.encode())
        order = list(modules.in_order(self.place))
        self.assertEqual(order, ["virtio", "virtio_ring", "virtio_pci"])


class KernelsTest(PlaceTest):
    def setUp(self) -> None:
        super().setUp()
        cached = mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.place))
        cached.start()
        self.addCleanup(cached.stop)

    def keep(self, package: str) -> None:
        top = kernels.cache() / package
        (top / "boot").mkdir(parents=True)
        (top / "boot" / "vmlinuz-x").touch()
        (top / "lib" / "modules" / "x").mkdir(parents=True)

    def test_the_newest_that_is_kept_is_taken(self) -> None:
        for release in ("6.1.0-9", "6.1.0-10", "6.12.3+deb12"):
            self.keep(f"linux-image-{release}-cloud-amd64")
        taken = kernels.get("cloud-6.1").image.parts[-3]
        self.assertEqual(taken, "linux-image-6.1.0-10-cloud-amd64")

    def test_fetching_what_is_kept_needs_nobody(self) -> None:
        self.keep("linux-image-6.1.0-9-cloud-amd64")
        with mock.patch.dict(os.environ, PATH=str(self.place)):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(guest.main(["fetch"]), 0)
        self.assertRegex(said.getvalue(), "^guest.py: cloud-6.12: apt-cache is missing")

    def test_fetching_fails_without_the_kernel_that_everything_uses(self) -> None:
        self.keep("linux-image-6.12.3-cloud-amd64")
        with mock.patch.dict(os.environ, PATH=str(self.place)):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(guest.main(["fetch"]), machine.BROKEN)

    def test_where_nothing_is_kept_and_there_is_no_apt_there_is_none(self) -> None:
        with mock.patch.dict(os.environ, PATH=str(self.place)):
            with self.assertRaisesRegex(kernels.NoKernel, "apt-cache is missing"):
                kernels.get("cloud-6.1")


class ResultsTest(PlaceTest):
    def test_names_that_lead_out_links_and_devices_are_left_out(self) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as members:
            for name in ("../out", str(self.place / "absolute"), "good/file"):
                member = tarfile.TarInfo(name)
                member.size = 3
                members.addfile(member, io.BytesIO(b"abc"))
            for name, kind in (("link", tarfile.SYMTYPE), ("device", tarfile.CHRTYPE)):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc"
                members.addfile(member)
        machine.unpack(packed, self.place / "target")
        found = [path.relative_to(self.place) for path in sorted(self.place.rglob("*"))]
        self.assertEqual([str(path) for path in found], ["target", "target/good", "target/good/file"])

    def test_a_torn_archive_gives_what_was_whole(self) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as members:
            for name in ("first", "second"):
                member = tarfile.TarInfo(name)
                member.size = 1024
                members.addfile(member, io.BytesIO(bytes(1024)))
        machine.unpack(io.BytesIO(packed.getvalue()[:2200]), self.place / "target")
        self.assertEqual((self.place / "target" / "first").stat().st_size, 1024)


if __name__ == "__main__":
    unittest.main()
