import tempfile
import unittest
from pathlib import Path

from lint import sizes


class Sizes(unittest.TestCase):
    def test_only_a_file_over_the_budget_is_reported(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "at.cc").write_text("\n" * sizes.MOST_LINES)
            (root / "over.cc").write_text("\n" * (sizes.MOST_LINES + 1))
            checked, problems = sizes.check(root)
            self.assertEqual(checked, 2)
            self.assertEqual(len(problems), 1)
            self.assertTrue(problems[0].startswith("over.cc: 601 lines"))

    def test_no_files_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(sizes.main([empty]), 1)


if __name__ == "__main__":
    unittest.main()
