import tempfile
import unittest
from pathlib import Path

from lint import doc_links


class DocLinks(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        (self.root / "docs/errors").mkdir(parents=True)
        (self.root / "engine/kernel").mkdir(parents=True)
        (self.root / "docs/other.md").write_text("# Other\n\n## What `x` is, exactly\n")
        (self.root / "docs/errors/FS_ERROR.md").write_text("# FS_ERROR\n")

    def problems(self, text: str, name: str = "docs/page.md") -> list[str]:
        (self.root / name).write_text(text)
        return doc_links.check(self.root)[1]

    def test_what_exists_passes(self) -> None:
        text = (
            "[a](other.md) [b](other.md#what-x-is-exactly) [c](../engine/kernel/) "
            "[d](https://example.org/none) [e](#here)\n\n# Here\n\n"
            "`docs/other.md` `engine/kernel/` `kernel/` `docs/errors/<CODE>.md` `a/b` `--flag`\n"
        )
        self.assertEqual(self.problems(text), [])

    def test_a_broken_link_is_reported_with_its_line(self) -> None:
        problems = self.problems("\n[a](missing.md)\n")
        self.assertEqual(problems, ["docs/page.md:2: link to missing.md, which does not exist"])

    def test_a_missing_heading_is_reported(self) -> None:
        self.assertEqual(len(self.problems("[a](other.md#nowhere)\n")), 1)
        self.assertEqual(len(self.problems("[a](#nowhere)\n")), 1)

    def test_a_path_in_backquotes_that_is_missing_is_reported(self) -> None:
        for path in ("docs/missing.md", "daemon/http", "kernel/cgroup2.cc", "docs/none/<CODE>.md"):
            with self.subTest(path):
                self.assertEqual(self.problems(f"`{path}`\n"), [f"docs/page.md:1: `{path}` does not exist"])

    def test_a_test_in_backquotes_must_be_written_somewhere(self) -> None:
        (self.root / "engine/kernel/group_test.cc").write_text(
            "TEST(Group, IsMade) {}\nTEST_F(GroupTest,\n       IsGone) {}\n"
        )
        self.assertEqual(self.problems("`Group.IsMade` `GroupTest.IsGone` `Group.size`\n"), [])
        problems = self.problems("`Group.IsMissing`\n")
        self.assertEqual(problems, ["docs/page.md:1: there is no test `Group.IsMissing`"])

    def test_blocks_of_code_are_left_alone_and_lines_after_them_count_right(self) -> None:
        problems = self.problems("```\n[a](no.md) `docs/no.md`\n```\n[b](no.md)\n")
        self.assertEqual(problems, ["docs/page.md:4: link to no.md, which does not exist"])

    def test_the_changelog_may_name_files_that_have_gone(self) -> None:
        self.assertEqual(self.problems("`docs/gone.md`\n", "CHANGELOG.md"), [])
        self.assertEqual(len(self.problems("[a](docs/gone.md)\n", "CHANGELOG.md")), 1)

    def test_no_documents_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(doc_links.main([empty]), 1)


if __name__ == "__main__":
    unittest.main()
