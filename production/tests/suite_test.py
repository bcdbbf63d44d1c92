"""What would otherwise pass because nobody looked."""

import tempfile
import unittest
from pathlib import Path

from suite import soak
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


def samples_with(**per_round: float) -> list[soak.Sample]:
    """A thousand rounds, in each of which so much more is taken."""
    taken = {"PSS in KiB": 0.0, "descriptors": 0.0, "cgroups": 0.0}
    return [
        soak.Sample(n, {what: 100 + n * per_round.get(what.split()[0], more) for what, more in taken.items()})
        for n in range(10, 1010, 10)
    ]


class Soak(unittest.TestCase):
    def test_slope_of_a_line(self) -> None:
        self.assertAlmostEqual(soak.slope([(x, 3.0 * x + 7) for x in range(10)]), 3.0)
        self.assertAlmostEqual(soak.slope([(x, 7.0) for x in range(10)]), 0.0)

    def test_what_does_not_grow(self) -> None:
        self.assertEqual(soak.too_steep(samples_with()), [])
        self.assertEqual(soak.too_steep(samples_with(PSS=0.1, descriptors=0.001)), [])

    def test_what_grows(self) -> None:
        for what, per_round in (("PSS", 2.0), ("descriptors", 0.1), ("cgroups", 0.1)):
            with self.subTest(what):
                steep = soak.too_steep(samples_with(**{what: per_round}))
                self.assertEqual(len(steep), 1)
                self.assertIn(f"{1000 * per_round:+.1f} in 1,000 rounds", steep[0])

    def run_with(self, program: str) -> Stage:
        with tempfile.TemporaryDirectory() as work:
            stage = make_stage(Path(work))
            stage.soak_iterations = 40
            stage.file("soak", "#!/bin/sh\n" + program).chmod(0o755)
            soak.soak(stage)
        return stage

    def test_rounds_are_counted(self) -> None:
        stage = self.run_with("while read rounds; do echo 0; done")
        self.assertIn("40 rounds", stage.notes[0])

    def test_rounds_that_fail(self) -> None:
        with self.assertRaisesRegex(Violation, "rounds that failed is 4, not 0"):
            self.run_with("while read rounds; do echo 1; done")

    def test_a_program_that_ends(self) -> None:
        with self.assertRaisesRegex(Violation, "the program has ended"):
            self.run_with("read rounds; exit 1")
