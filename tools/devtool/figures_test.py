import json
import tempfile
import unittest
from pathlib import Path

from devtool.figures import Ratio, find, read

# As palmshed_measure writes it.
DOCUMENT = """{"machine": {"cores": 2}, "peers": [{"name": "gone", "absent": "not installed"}], "figures": [
  {"measure": "growth", "name": "exec", "unit": "us", "samples": 9, "low": 1.0, "median": 2E0, "high": 3.0,
   "ratios": {"vfork+exec": {"value": 1.5, "low": 1.0, "high": 2.0}}, "axis": "files", "at": 10},
  {"measure": "ramp", "name": "most", "unit": "", "samples": 1, "low": 5, "median": 5, "high": 5,
   "ratios": {}, "note": "stopped"}]}"""


class Figures(unittest.TestCase):
    def setUp(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "figures.json")
            path.write_text(DOCUMENT)
            self.document = read(path)

    def test_are_read_with_their_ratios(self) -> None:
        growth, ramp = self.document["figures"]
        self.assertEqual(growth.ratios, {"vfork+exec": Ratio(1.5, 1, 2)})
        self.assertEqual((growth.axis, growth.at, growth.median), ("files", 10, 2))
        self.assertEqual((ramp.axis, ramp.note), ("", "stopped"))

    def test_are_found_by_measure_name_and_place(self) -> None:
        figures = self.document["figures"]
        self.assertIs(find(figures, "growth", "exec", 10), figures[0])
        self.assertIs(find(figures, "growth", "exec", 10, "files"), figures[0])
        self.assertIsNone(find(figures, "growth", "exec", 10, "live sandboxes"))
        self.assertIsNone(find(figures, "growth", "exec", 11))

    def test_a_figure_with_something_unknown_is_refused(self) -> None:
        document = json.loads(DOCUMENT)
        document["figures"][0]["median2"] = 1
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "figures.json")
            path.write_text(json.dumps(document))
            with self.assertRaises(TypeError):
                read(path)


if __name__ == "__main__":
    unittest.main()
