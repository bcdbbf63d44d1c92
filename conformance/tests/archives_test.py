"""Archives that the runner makes are what was said, and what a driver brings down is read as it is."""

import io
import lzma
import tarfile
import unittest
import zipfile

from runner import archives
from runner.driver import DriverFault
from runner.matching import compare
from runner.model import KitError, Status
from tests.support import RunnerTest

TREE = [
    {"name": "d", "type": "directory", "mode": 0o750},
    {"name": "d/f", "text": "content", "mode": 0o640, "modified": 1000000000},
    {"name": {"base64": "Zv+A"}, "base64": "AAEC"},
    {"name": "n" * 200, "fill": {"byte": 65, "count": 3}},
    {"name": "l", "type": "symlink", "target": "d/f"},
    {"name": "h", "type": "hardlink", "target": "d/f"},
]
HOSTILE = [
    {"name": "../evil", "text": "x", "mode": 0o6755},
    {"name": "/evil", "type": "directory"},
    {"name": "fifo", "type": "fifo"},
    {"name": "device", "type": "character-device"},
    {"name": "block", "type": "block-device"},
    {"name": "again", "text": "1"},
    {"name": "again", "text": "2"},
]
FACTS = [
    {"name": "d", "type": "directory", "mode": 0o750},
    {"name": "d/f", "type": "file", "bytes": "content", "mode": 0o640, "modified": 1000000000},
    {"name": {"base64": "Zv+A"}, "bytes": {"base64": "AAEC"}, "mode": 0o644},
    {"name": "n" * 200, "size": 3, "bytes": "AAA"},
    {"name": "l", "type": "symlink", "target": "d/f"},
    {"name": "h", "type": "file", "bytes": "content"},
]
STEPS = """
[[case.step]]
op = "archive-up"
path = "t"
entries = [{ name = "f", text = "${host.dir}", mode = 0o600 }]
expect = { "summary.entries" = 1 }
[[case.step]]
op = "archive-down"
path = "t"
expect.tree = [{ name = "f", bytes = "${host.dir}", mode = 0o600 }]
expect."summary.skippedPaths" = { contains = "fifo" }
"""


def members(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getmembers()


class Packing(unittest.TestCase):
    def test_what_is_packed_is_what_was_said(self) -> None:
        tree = archives.tree(archives.packed({"entries": TREE}))
        self.assertEqual(compare({"tree": FACTS}, {"tree": tree}), [])

    def test_the_same_entries_are_the_same_bytes(self) -> None:
        for name in ("tar", "tar.gz", "tar.xz"):
            step = {"entries": TREE, "format": name}
            self.assertEqual(archives.packed(step), archives.packed(step), name)

    def test_compressed_archives(self) -> None:
        plain = archives.packed({"entries": TREE})
        packed = archives.packed({"entries": TREE, "format": "tar.xz"})
        self.assertEqual(lzma.decompress(packed), plain)
        packed = archives.packed({"entries": TREE, "format": "tar.gz"})
        self.assertEqual(len(members(packed)), len(TREE))
        self.assertLess(len(packed), len(plain))

    def test_a_zip(self) -> None:
        plain = [TREE[0], TREE[1], TREE[4]]
        packed = archives.packed({"entries": plain, "format": "zip"})
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
            self.assertEqual(modes, {"d/": 0o040750, "d/f": 0o100640, "l": 0o120644})
            self.assertEqual((archive.read("d/f"), archive.read("l")), (b"content", b"d/f"))
        with self.assertRaisesRegex(KitError, "a zip has no fifo"):
            archives.packed({"entries": HOSTILE, "format": "zip"})

    def test_nothing_is_mended(self) -> None:
        found = members(archives.packed({"entries": HOSTILE}))
        self.assertEqual([member.name for member in found], [entry["name"] for entry in HOSTILE])
        self.assertEqual(found[0].mode, 0o6755)
        self.assertTrue(found[2].isfifo() and found[3].ischr() and found[4].isblk())
        self.assertEqual({(member.uid, member.gid) for member in found}, {(0, 0)})

    def test_bytes_in_the_place_of_an_archive(self) -> None:
        self.assertEqual(archives.packed({"text": "none"}), b"none")
        self.assertEqual(archives.packed({"base64": "AAEC", "cut": 1}), b"\0")
        whole = archives.packed({"entries": TREE})
        self.assertEqual(archives.packed({"entries": TREE, "cut": 700}), whole[:700])


class Reading(unittest.TestCase):
    def test_a_tar_may_begin_with_its_top(self) -> None:
        entries = [
            {"name": "./", "type": "directory"},
            {"name": "./f", "text": "x"},
            {"name": "/g", "text": "x"},
        ]
        tree = archives.tree(archives.packed({"entries": entries}))
        self.assertEqual([entry["name"] for entry in tree], ["f", "/g"])

    def test_special_files_are_told(self) -> None:
        tree = archives.tree(archives.packed({"entries": HOSTILE}))
        kinds = {entry["name"]: entry["type"] for entry in tree}
        self.assertEqual((kinds["fifo"], kinds["device"], kinds["block"]), ("other",) * 3)

    def test_what_is_no_archive_is_the_drivers_fault(self) -> None:
        whole = archives.packed({"entries": [{"name": "f", "fill": {"byte": 65, "count": 5000}}]})
        end = bytes(1024)
        link = {"name": "h", "type": "hardlink", "target": "gone"}
        for data in (b"", b"x" * 512, whole[:6144], whole[:512] + end, b"x" * 512 + end):
            with self.subTest(data=data[:20]), self.assertRaises(DriverFault):
                archives.tree(data)
        with self.assertRaisesRegex(DriverFault, "no tar archive"):
            archives.tree(archives.packed({"entries": [link]}))
        with self.assertRaises(DriverFault):
            archives.tree(archives.packed({"entries": TREE, "format": "tar.gz"}))


class Steps(RunnerTest):
    def test_an_archive_goes_up_and_comes_down(self) -> None:
        outcome = self.run_fake(STEPS)
        self.assertEqual(outcome.status, Status.PASSED, outcome.failures)
        self.assertIn('archive-up "t" entries [{"name": "f"', outcome.seen[0].asked)

    def test_wrong_answers(self) -> None:
        outcome = self.run_fake(STEPS, "loses-modes")
        self.assertEqual(outcome.status, Status.FAILED)
        self.assert_said(outcome, 'tree "f" mode: expected 384, observed 420')
        self.assert_said(self.run_fake(STEPS, "no-archive"), "the driver", "does not end as a tar")
        self.assert_said(self.run_fake(STEPS, "no-summary"), "breaks its schema", "'summary'")

    def test_limits_reach_the_driver(self) -> None:
        for limit in ("maxEntries", "maxBytes", "timeout"):
            body = STEPS.replace('path = "t"', f'path = "t"\n{limit} = 1')
            self.assertEqual(self.run_fake(body, f"wants-{limit}").status, Status.PASSED)
            self.assert_said(self.run_fake(STEPS, f"wants-{limit}"), f"there is no {limit}")


if __name__ == "__main__":
    unittest.main()
