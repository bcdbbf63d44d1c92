import tempfile
import unittest
from pathlib import Path

from lint import doc_code

HEADER = """#pragma once
#include <string>
namespace palmshed {
class Engine {};
class Sandbox { public: int Run(std::string program) { return static_cast<int>(program.size()); } };
namespace literals {}
}
"""


class DocCode(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        headers = self.root / doc_code.HEADERS / "palmshed"
        headers.mkdir(parents=True)
        (headers / "palmshed.h").write_text(HEADER)

    def problems(self, *blocks: str) -> list[str]:
        text = "# Page\n\n" + "".join(f"```cpp\n{block}\n```\n\n" for block in blocks)
        (self.root / "page.md").write_text(text)
        return doc_code.check(self.root)[1]

    def test_snippets_and_programs_that_compile_pass(self) -> None:
        program = '#include "palmshed/palmshed.h"\nint main() { palmshed::Engine engine; }'
        self.assertEqual(self.problems('int n = sandbox.Run("ls");', "auto e = engine;", program), [])

    def test_a_snippet_that_does_not_compile_is_reported_where_it_stands(self) -> None:
        problems = self.problems("int n = 1;", 'sandbox.Walk("ls");')
        self.assertEqual(len(problems), 1)
        self.assertTrue(problems[0].startswith("page.md:8:"), problems)

    def test_no_code_is_a_failure(self) -> None:
        self.problems()
        self.assertEqual(doc_code.main([str(self.root)]), 1)


if __name__ == "__main__":
    unittest.main()
