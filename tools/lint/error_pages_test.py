import tempfile
import unittest
from pathlib import Path

from lint import error_pages

HEADER = """
enum class ErrorCode : std::uint8_t {
  kFsError,  ///< FS_ERROR: a file operation failed.
  kUnknown,  ///< UNKNOWN
};
enum class Other { kX,  ///< NOT_A_CODE
};
"""
PAGE = "# X\n\n" + "".join(f"## {section}\n\nWords.\n\n" for section in error_pages.SECTIONS)


class ErrorPages(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.plant(error_pages.HEADER, HEADER)
        self.plant(error_pages.PAGES / "FS_ERROR.md", PAGE)
        self.plant(error_pages.PAGES / "UNKNOWN.md", PAGE)

    def plant(self, path: Path, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_a_full_page_for_each_code_passes(self) -> None:
        self.assertEqual(error_pages.check(self.root), (2, []))

    def test_a_missing_page_is_reported(self) -> None:
        (self.root / error_pages.PAGES / "UNKNOWN.md").unlink()
        self.assertEqual(error_pages.check(self.root)[1], ["UNKNOWN has no page"])

    def test_an_empty_section_is_reported(self) -> None:
        empty = PAGE.replace("## Cause\n\nWords.", "## Cause\n")
        self.plant(error_pages.PAGES / "UNKNOWN.md", empty)
        self.assertEqual(error_pages.check(self.root)[1], ["UNKNOWN: nothing under 'Cause'"])

    def test_a_page_without_a_code_is_reported(self) -> None:
        self.plant(error_pages.PAGES / "OLD_CODE.md", PAGE)
        self.assertEqual(error_pages.check(self.root)[1], ["OLD_CODE is no error code"])

    def test_no_codes_is_a_failure(self) -> None:
        self.plant(error_pages.HEADER, "")
        self.assertEqual(error_pages.main([str(self.root)]), 1)


if __name__ == "__main__":
    unittest.main()
