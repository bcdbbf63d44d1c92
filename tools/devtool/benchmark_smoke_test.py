import contextlib
import io
import unittest

from devtool import benchmark_smoke
from devtool.benchmark_smoke import EXCEEDED, KEPT, NOT_JUDGED, Checked, read

EXEC, RUN = "exec with 50 ms idle", "palmshed run with 0 ms idle"


def over(*names: str) -> Checked:
    return Checked(EXCEEDED, frozenset(names))


class Smoke(unittest.TestCase):
    def smoke(self, *runs: Checked) -> tuple[int, int]:
        """Its status, and how many runs it made."""
        left = list(runs)
        with contextlib.redirect_stdout(io.StringIO()):
            status = benchmark_smoke.smoke(lambda: left.pop(0))
        return status, len(runs) - len(left)

    def test_one_good_run_is_enough(self) -> None:
        self.assertEqual(self.smoke(Checked(KEPT, frozenset())), (KEPT, 1))
        self.assertEqual(self.smoke(over(EXEC), Checked(KEPT, frozenset())), (KEPT, 2))

    def test_the_same_ratio_over_its_limit_each_time_is_a_failure(self) -> None:
        self.assertEqual(self.smoke(over(EXEC, RUN), over(EXEC), over(EXEC, RUN)), (EXCEEDED, 3))

    def test_another_ratio_each_time_is_noise(self) -> None:
        self.assertEqual(self.smoke(over(EXEC), over(RUN)), (KEPT, 2))

    def test_a_busy_machine_does_not_judge(self) -> None:
        self.assertEqual(self.smoke(Checked(NOT_JUDGED, frozenset({EXEC}))), (KEPT, 1))

    def test_a_program_that_fails_is_a_failure_at_once(self) -> None:
        self.assertEqual(self.smoke(over()), (EXCEEDED, 1))
        self.assertEqual(self.smoke(Checked(-6, frozenset())), (-6, 1))

    def test_ratios_are_told_apart_without_their_figures(self) -> None:
        errors = (
            "something else\n"
            "over the limit: exec, every limit with 0 ms idle: 1.40 x without limits (at least 1.31), limit 1.10\n"
            "over the limit: exec with 50 ms idle: was not measured against V\n"
        )
        self.assertEqual(read(1, errors).excesses, {"exec, every limit with 0 ms idle", EXEC})


if __name__ == "__main__":
    unittest.main()
