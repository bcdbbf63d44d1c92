import tempfile
import unittest
from pathlib import Path

from lint import formatting


class Formatting(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        (self.root / ".clang-format").write_text("BasedOnStyle: Google\n")
        (self.root / "good.cc").write_text("int Good() { return 1; }\n")

    def test_a_formatted_file_passes(self) -> None:
        self.assertEqual(formatting.check(self.root), (1, []))

    def test_an_unformatted_file_is_reported_and_can_be_mended(self) -> None:
        (self.root / "bad.cc").write_text("int  Bad( ) {return 1;}\n")
        self.assertTrue(any("bad.cc:1" in problem for problem in formatting.check(self.root)[1]))
        formatting.check(self.root, fix=True)
        self.assertEqual(formatting.check(self.root), (2, []))

    def test_no_files_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(formatting.main([empty]), 1)


if __name__ == "__main__":
    unittest.main()
