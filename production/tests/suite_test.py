"""What would otherwise pass because nobody looked."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from runner.subreaper import adopt_orphans

from suite import residue
from suite.soak import slope
from suite.stage import Stage, Violation


def make_stage(work: Path) -> Stage:
    return Stage(prefix=work, programs=work, work=work, full=False, verbose=False)


class Residue(unittest.TestCase):
    def setUp(self) -> None:
        grace, residue.GRACE_S = residue.GRACE_S, 0.1
        self.addCleanup(setattr, residue, "GRACE_S", grace)

    def test_nothing(self) -> None:
        with residue.nothing_left() as left:
            pass
        self.assertEqual(left, [])

    def test_a_process_whose_parent_has_ended(self) -> None:
        adopt_orphans()
        with residue.nothing_left() as left:
            said = subprocess.run(
                ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, check=True
            )
        subprocess.run(["kill", "-9", said.stdout.decode().strip()], check=True)
        self.assertEqual(len(left), 1)
        self.assertIn("sleep 60", left[0])

    def test_a_directory_of_a_sandbox(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            places, residue.state_directories = residue.state_directories, lambda: [Path(directory)]
            self.addCleanup(setattr, residue, "state_directories", places)
            with residue.nothing_left() as left:
                Path(directory, "sbx_0123456789ab").mkdir()
                Path(directory, "uids").touch()
        self.assertEqual(left, [f"file {directory}/sbx_0123456789ab"])


class Steps(unittest.TestCase):
    def test_a_budget(self) -> None:
        with tempfile.TemporaryDirectory() as work, self.assertRaises(Violation):
            with make_stage(Path(work)).step("nothing", 0.0):
                pass

    def test_a_value(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            make_stage(Path(work)).equal("it", 1, 1)
            with self.assertRaisesRegex(Violation, "it is 1, not 2"):
                make_stage(Path(work)).equal("it", 1, 2)


class Slope(unittest.TestCase):
    def test_of_a_line(self) -> None:
        self.assertAlmostEqual(slope([(x, 3.0 * x + 7) for x in range(10)]), 3.0)
        self.assertAlmostEqual(slope([(x, 7.0) for x in range(10)]), 0.0)
