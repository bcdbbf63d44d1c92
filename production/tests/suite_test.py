"""What would otherwise pass because nobody looked."""

import tempfile
import unittest
from pathlib import Path

from suite.soak import slope
from suite.stage import Stage, Violation


def make_stage(work: Path) -> Stage:
    return Stage(prefix=work, programs=work, work=work, full=False, verbose=False)


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
