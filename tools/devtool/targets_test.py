import unittest

from devtool.figures import FLOOR, PEER, Figure, Ratio
from devtool.targets import (
    TARGETS,
    Target,
    certain,
    growth_of_exec,
    one_to_another,
    sandbox_memory,
    share_of_allowance,
    time_to_create,
    verdict,
)


def figure(measure: str, name: str, median: float, at: float = 0, **more: object) -> Figure:
    return Figure(measure, name, "us", 9, median, median, median, at=at, **more)  # type: ignore[arg-type]


def against_floor(value: float) -> dict[str, Ratio]:
    return {FLOOR: Ratio(value, value * 0.9, value * 1.1)}


class Verdicts(unittest.TestCase):
    def at_most(self, low: float, high: float) -> str:
        return verdict(Target("", "x", 1, lambda _: None), Ratio((low + high) / 2, low, high))

    def at_least(self, low: float, high: float) -> str:
        return verdict(Target("", "x", 1, lambda _: None, at_least=True), Ratio((low + high) / 2, low, high))

    def test_only_a_whole_interval_decides(self) -> None:
        self.assertEqual(self.at_most(0.5, 0.9), "met")
        self.assertEqual(self.at_most(0.9, 1.1), "within noise")
        self.assertEqual(self.at_most(1.1, 1.2), "missed")
        self.assertEqual(self.at_least(1.1, 1.2), "met")
        self.assertEqual(self.at_least(0.9, 1.1), "within noise")
        self.assertEqual(self.at_least(0.5, 0.9), "missed")

    def test_what_was_not_measured_is_neither_met_nor_missed(self) -> None:
        for target in TARGETS:
            self.assertEqual(verdict(target, target.measured([])), "not measured", target.what)


class Measured(unittest.TestCase):
    def test_exec_may_take_a_part_of_the_floor_or_a_fixed_time(self) -> None:
        fast = [
            figure("latency", FLOOR, 500),
            figure("latency", "exec", 650, ratios=against_floor(1.3)),
        ]
        self.assertAlmostEqual(share_of_allowance(0)(fast).value, 1)  # type: ignore[union-attr]
        slow = [
            figure("latency", FLOOR, 3000),
            figure("latency", "exec", 3360, ratios=against_floor(1.12)),
        ]
        self.assertAlmostEqual(share_of_allowance(0)(slow).value, 1)  # type: ignore[union-attr]

    def test_growth_is_of_multiples_of_the_floor(self) -> None:
        figures = [
            figure("growth", "exec", 600, at, axis="live sandboxes", ratios=against_floor(ratio))
            for at, ratio in ((1, 1.2), (1000, 1.5))
        ]
        measured = growth_of_exec(1000)(figures)
        assert measured is not None
        self.assertAlmostEqual(measured.value, 1.25)
        self.assertLess(measured.low, 1.25)
        self.assertGreater(measured.high, 1.25)

    def test_creates_are_summed_over_all_that_were_missing(self) -> None:
        name = "create, one after another"
        figures = [figure("growth", name, us, at) for at, us in ((1, 4000), (10, 1000), (100, 2000), (1000, 1))]
        self.assertEqual(time_to_create(100)(figures), certain((4000 + 9 * 1000 + 90 * 2000) / 1e6))
        self.assertIsNone(time_to_create(50)(figures))

    def test_memory_is_summed_where_the_kernels_part_is_known(self) -> None:
        parts = ("each sandbox, PSS", "each sandbox, page tables", "each sandbox, kernel")
        figures = [figure("memory", part, 256, 100, axis="live sandboxes") for part in parts]
        figures.append(figure("memory", "each sandbox, PSS", 999, 10, axis="live sandboxes"))
        self.assertEqual(sandbox_memory(figures), certain(0.75))
        self.assertIsNone(sandbox_memory(figures[:2]))

    def test_rates_are_compared_at_the_same_number_of_workers(self) -> None:
        figures = [figure("throughput", "ours", 300, 2), figure("throughput", PEER, 100, 2)]
        self.assertEqual(one_to_another("throughput", "ours", PEER, 2)(figures), certain(3))
        self.assertIsNone(one_to_another("throughput", "ours", PEER, 4)(figures))

    def test_a_peer_that_did_not_get_one_run_done_has_no_rate(self) -> None:
        figures = [figure("throughput", "ours", 300, 2), figure("throughput", PEER, 0, 2)]
        self.assertIsNone(one_to_another("throughput", "ours", PEER, 2)(figures))


if __name__ == "__main__":
    unittest.main()
