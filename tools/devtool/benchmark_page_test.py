import unittest
import xml.etree.ElementTree as ElementTree

from devtool import benchmark_page
from devtool.figures import FLOOR, PEER, Figure, Ratio, Run


def ratio(value: float) -> Ratio:
    return Ratio(value, value / 2, value * 2)


def latency(name: str, at: float, median: float, **ratios: Ratio) -> Figure:
    named = {{"floor": FLOOR, "peer": PEER}.get(base, base): one for base, one in ratios.items()}
    return Figure(
        "latency", name, "us", 9, median / 2, median, median * 2, axis="ms idle", at=at, ratios=named
    )


def growth(name: str, at: float, median: float) -> Figure:
    return Figure("growth", name, "us", 1, median, median, median, axis="files", at=at)


FIGURES = [
    growth("exec", 10, 600),
    growth("exec", 1000, 700),
    latency(FLOOR, 0, 500, floor=Ratio(1, 1, 1), peer=ratio(0.2)),
    latency(PEER, 0, 2500, floor=ratio(5), peer=Ratio(1, 1, 1)),
    latency("exec", 0, 550, floor=ratio(1.1), peer=ratio(0.22)),
    latency("exec", 50, 650, floor=ratio(1.3)),
    latency("exec, every limit", 0, 560, exec=ratio(1.02), peer=ratio(0.23)),
    Figure("ramp", "most", "", 1, 5, 5, 5, note="stopped by a | guardrail"),
]


def run(figures: list[Figure], missing: dict[str, str] | None = None) -> Run:
    peers = [
        {"name": PEER, "command": ["/usr/bin/bwrap", "--", "/bin/true"]},
        {"name": "gone", "absent": "not installed: the package gone"},
        {"name": "shaky", "command": ["shaky"], "failures": ["1 failed after 50 ms idle, made again: busy"]},
    ]
    machine = {"cpu": "a processor", "cores": 2}
    return Run(machine, {"commit": "abc"}, peers, figures, missing or {})


class Page(unittest.TestCase):
    def setUp(self) -> None:
        self.text, self.drawings = benchmark_page.page(run(FIGURES, {"mounts": "absent: needs root"}))

    def lines(self) -> list[str]:
        return self.text.splitlines()

    def test_says_on_what_and_with_what_it_was_measured(self) -> None:
        for line in ("| cpu | a processor |", "| commit | abc |"):
            self.assertIn(line, self.lines())
        self.assertIn(f"- **{PEER}**: `/usr/bin/bwrap -- /bin/true`", self.lines())
        self.assertIn("- **gone**: absent, not installed: the package gone", self.lines())
        self.assertIn("- **shaky**: `shaky`; 1 failed after 50 ms idle, made again: busy", self.lines())
        self.assertIn("Not measured: mounts, absent: needs root", self.lines())

    def test_names_stand_down_and_places_across(self) -> None:
        self.assertIn("| us, by ms idle | 0 | 50 |", self.lines())
        self.assertIn("| exec | 550 (275 to 1,100) | 650 (325 to 1,300) |", self.lines())
        self.assertIn("| exec, every limit | 560 (280 to 1,120) |  |", self.lines())
        self.assertIn("| exec | 600 | 700 |", self.lines())

    def test_each_ratio_is_to_what_does_the_same(self) -> None:
        self.assertIn(f"| x {FLOOR}, by ms idle | 0 | 50 |", self.lines())
        self.assertIn("| exec | 1.1 (0.55 to 2.2) | 1.3 (0.65 to 2.6) |", self.lines())
        self.assertIn("| x exec, by ms idle | 0 |", self.lines())
        self.assertIn("| exec, every limit | 1.02 (0.51 to 2.04) |", self.lines())

    def test_peers_have_a_table_without_themselves(self) -> None:
        at = self.lines().index(f"| 0 ms idle, x | {PEER} |")
        names = [line.split(" | ")[0] for line in self.lines()[at + 2 : at + 5]]
        self.assertEqual(names, [f"| {FLOOR}", "| exec", "| exec, every limit"])

    def test_latency_comes_first_whatever_came_first(self) -> None:
        self.assertLess(self.text.index("## Latency"), self.text.index("## Growth"))
        self.assertLess(self.text.index("## Growth"), self.text.index("## Ramp"))

    def test_what_stopped_something_is_told(self) -> None:
        self.assertIn("most: stopped by a | guardrail.", self.lines())

    def test_every_target_has_a_verdict(self) -> None:
        self.assertIn("| `exec, every limit` to `exec` | <= 1.1 x | 1.02 (0.51 to 2.04) | within noise |", self.lines())
        self.assertIn("| `palmshed run` to B | <= 0.5 x |  | not measured |", self.lines())

    def test_what_has_an_axis_is_drawn_and_shown(self) -> None:
        self.assertEqual(set(self.drawings), {"latency-by-ms-idle.svg", "growth-by-files.svg"})
        for name, drawing in self.drawings.items():
            self.assertIn(f"]({name})", self.text)
            ElementTree.fromstring(drawing)

    def test_a_run_that_gave_nothing_has_a_page_as_well(self) -> None:
        text, drawings = benchmark_page.page(run([], {"latency": "ended with status 1"}))
        self.assertIn("Not measured: latency, ended with status 1", text)
        self.assertEqual(drawings, {})


if __name__ == "__main__":
    unittest.main()
