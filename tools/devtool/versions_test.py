import json
import tempfile
import unittest
from pathlib import Path

from devtool.checkout import ROOT
from devtool.versions import library_problems, spec_problems, tag_of_head


class Versions(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.write(
            "engine/include/palmshed/version.h",
            'constexpr char kVersion[] = "1.2.3";\nconstexpr char kSpecVersion[] = "1.4.0";\n',
        )
        self.write("spec/version.md", "# Version\n\nThe current version is **1.4.0**. More.\n")
        self.write("spec/CHANGELOG.md", "# Changes\n\n## 1.4.0\n\n## 1.3.0\n")
        self.schema("1.4.0")
        self.write("README.md", "# It\n\nThis is version 1.2.3. It works.\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## [1.2.3]\n\n## [1.2.2]\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def schema(self, version: str) -> None:
        document = {"$id": f"https://example.org/spec/{version}/a.schema.json"}
        self.write("spec/schemas/a.schema.json", json.dumps(document))

    def test_all_agree(self) -> None:
        self.assertEqual(spec_problems(self.root), [])
        self.assertEqual(library_problems(self.root, "1.2.3"), [])

    def test_each_place_of_the_specification(self) -> None:
        self.schema("1.3.0")
        self.write("spec/CHANGELOG.md", "# Changes\n\n## 1.3.0\n")
        self.assertEqual(
            spec_problems(self.root),
            [
                "spec/CHANGELOG.md says 1.3.0, spec/version.md 1.4.0",
                "spec/schemas/a.schema.json says 1.3.0, spec/version.md 1.4.0",
            ],
        )

    def test_a_tag_of_another_version(self) -> None:
        self.assertEqual(
            library_problems(self.root, "1.2.4"), ["the tag is v1.2.4, version.h says 1.2.3"]
        )

    def test_a_changelog_that_was_not_closed(self) -> None:
        self.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [1.2.2]\n")
        self.assertEqual(
            library_problems(self.root, "1.2.3"),
            ["CHANGELOG.md has no section 1.2.3 above the others"],
        )
        self.assertEqual(library_problems(self.root, ""), [])

    def test_a_readme_of_another_version(self) -> None:
        self.write("README.md", "# It\n\nThis is version 1.2.2. It works.\n")
        self.assertEqual(
            library_problems(self.root, "1.2.3"), ["README.md says 1.2.2, version.h 1.2.3"]
        )

    def test_this_checkout(self) -> None:
        self.assertEqual(spec_problems(ROOT) + library_problems(ROOT, tag_of_head(ROOT)), [])
