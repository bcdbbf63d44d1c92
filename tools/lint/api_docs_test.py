import tempfile
import unittest
from pathlib import Path

from lint import api_docs

DOCUMENTED = """#pragma once
#include <memory>
namespace palmshed {
inline namespace v1 {
/// What it is.
enum class Kind : unsigned char {
  kOne,  ///< The first.
};
/// Makes nothing of `value`.
Kind Classify(int value);
/// An owner.
class Owner {
 public:
  Owner(Owner&&) noexcept;
  Owner& operator=(Owner&&) noexcept;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner();
  /// How many.
  int count() const;

 private:
  int count_;
};
}  // namespace v1
}  // namespace palmshed
"""


class ApiDocs(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        (self.root / "palmshed").mkdir()

    def problems(self, header: str) -> list[str]:
        (self.root / "palmshed/planted.h").write_text(header)
        return api_docs.build(self.root / "palmshed", self.root / "out")[1]

    def test_a_documented_header_passes_and_is_printed(self) -> None:
        self.assertEqual(self.problems(DOCUMENTED), [])
        page = (self.root / "out/api/palmshed-Owner.md").read_text()
        self.assertIn("int count() const;", page)
        self.assertIn("How many.", page)
        self.assertNotIn("count_", page)
        names = (self.root / "out/api/palmshed.md").read_text()
        self.assertIn("Makes nothing of `value`.", names)
        self.assertIn("| `kOne` | The first. |", names)

    def test_each_kind_of_undocumented_declaration_is_reported(self) -> None:
        for comment, name in (
            ("  ///< The first.", "palmshed::Kind::kOne"),
            ("/// What it is.", "palmshed::Kind"),
            ("/// Makes nothing of `value`.", "palmshed::Classify"),
            ("/// An owner.", "palmshed::Owner"),
            ("  /// How many.", "palmshed::Owner::count"),
        ):
            with self.subTest(name):
                self.assertIn(comment, DOCUMENTED)
                problems = self.problems(DOCUMENTED.replace(comment, ""))
                self.assertEqual(len(problems), 1)
                self.assertTrue(problems[0].endswith(f": {name} is not documented"), problems)

    def test_a_reference_to_nothing_is_reported(self) -> None:
        header = DOCUMENTED.replace("How many.", "How many; see @ref Missing.")
        self.assertTrue(any("Missing" in problem for problem in self.problems(header)))

    def test_no_headers_is_a_failure(self) -> None:
        self.assertEqual(api_docs.main([str(self.root / "palmshed"), str(self.root / "out")]), 1)


if __name__ == "__main__":
    unittest.main()
