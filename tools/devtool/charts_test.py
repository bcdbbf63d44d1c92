import unittest
import xml.etree.ElementTree as ElementTree

from devtool import charts

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


class Scales(unittest.TestCase):
    def test_values_that_are_close_start_at_zero_with_round_steps(self) -> None:
        scale = charts.scale([3, 6398], 0, 100)
        self.assertTrue(scale.logarithmic)
        scale = charts.scale([1600, 6398], 0, 100)
        self.assertFalse(scale.logarithmic)
        self.assertEqual(scale.ticks(), [0, 2000, 4000, 6000, 8000])
        self.assertEqual(scale.place(4000), 50)

    def test_values_that_are_far_apart_have_decades(self) -> None:
        scale = charts.scale([3, 4000], 0, 400)
        self.assertEqual(scale.ticks(), [1, 10, 100, 1000, 10000])
        self.assertAlmostEqual(scale.place(100), 200)

    def test_zero_has_a_place_among_decades(self) -> None:
        self.assertEqual(charts.scale([0, 1, 4000], 10, 400).place(0), 10)

    def test_nothing_but_zeros_can_be_drawn(self) -> None:
        self.assertEqual(charts.scale([0, 0], 10, 400).place(0), 10)
        self.assertEqual(charts.scale([], 10, 400).place(0), 10)


class Numbers(unittest.TestCase):
    def test_have_three_digits_that_matter(self) -> None:
        written = [charts.number(value) for value in (0, 0.01234, 1.5, 99.96, 123.4, 1048576)]
        self.assertEqual(written, ["0", "0.0123", "1.5", "100", "123", "1,048,576"])


class Drawings(unittest.TestCase):
    def test_lines_have_a_point_for_each_value_and_a_legend(self) -> None:
        drawn = [charts.Line("a & b", [(10, 5), (1, 3)]), charts.Line("c", [(1, 4)])]
        drawing = charts.lines("Title <1>", "things", "us", drawn)
        root = ElementTree.fromstring(drawing)
        self.assertEqual(len(list(root.iter(f"{SVG}circle"))), 3)
        self.assertEqual(len(list(root.iter(f"{SVG}polyline"))), 2)
        for words in ("Title <1>", "things", "us", "a & b", "c"):
            self.assertIn(words, texts(drawing))

    def test_points_of_a_line_are_in_the_order_of_the_axis(self) -> None:
        root = ElementTree.fromstring(charts.lines("", "", "", [charts.Line("a", [(10, 5), (1, 3)])]))
        points = next(root.iter(f"{SVG}polyline")).get("points", "").split()
        across = [float(point.split(",")[0]) for point in points]
        self.assertEqual(across, sorted(across))

    def test_bars_stand_from_the_shortest_to_the_longest(self) -> None:
        words = texts(charts.bars("Title", "us", [("slow", 3), ("fast", 1)]))
        self.assertLess(words.index("fast"), words.index("slow"))
        self.assertIn("3 us", words)


if __name__ == "__main__":
    unittest.main()
