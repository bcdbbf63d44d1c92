import tempfile
import unittest
from pathlib import Path

from devtool import fuzz


class ReadTest(unittest.TestCase):
    def test_what_a_fuzzer_said(self) -> None:
        counted = "stat::number_of_executed_units: 4392\nstat::average_exec_per_sec: 274\n"
        for status, said, runs, fine in (
            (0, counted, 4392, True),
            (77, "==1== ERROR: libFuzzer: deadly signal\n" + counted, 4392, False),
            (1, "", 0, False),
            (0, "", 0, False),
            (0, "stat::number_of_executed_units: 0\n", 0, False),
        ):
            with self.subTest(status=status, said=said):
                verdict = fuzz.read(status, said)
                self.assertEqual((verdict.runs, not verdict.problem), (runs, fine))


class BeginTest(unittest.TestCase):
    def test_every_run_begins_with_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            fuzz.begin(Path(one))
            fuzz.begin(Path(other))
            contents = [
                {path.name: path.read_bytes() for path in Path(top).iterdir()} for top in (one, other)
            ]
        self.assertEqual(contents[0], contents[1])
        self.assertEqual(len(set(contents[0].values())), fuzz.FIRST)


class FuzzersTest(unittest.TestCase):
    def test_there_are_some(self) -> None:
        self.assertIn("archive", fuzz.fuzzers())

    def test_unknown_ones_are_refused_before_anything_is_built(self) -> None:
        self.assertEqual(fuzz.fuzz(["archive", "nonsense"], 1), 2)


if __name__ == "__main__":
    unittest.main()
