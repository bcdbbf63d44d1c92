"""Checks that every relative link, and every path or test in backquotes of the documents, exists.

Usage: doc_links.py [ROOT]
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

from lint.tree import CPP_SUFFIXES, report, walk

# A path in backquotes is checked when it starts with one of these; a room of the engine may stand
# without `engine/` before it.
TOP_LEVEL = frozenset(
    "spec engine cli daemon sdk conformance tests benchmarks production examples docs tools cmake"
    .split()
)
ENGINE_ROOMS = frozenset(
    "include base model plan run workspace backends kernel child".split()
)
HISTORY = frozenset({"CHANGELOG.md"})  # Names files that have gone since.

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
_PATH = re.compile(r"^[\w.<>*-]+(/[\w.<>*-]*)+$")
# A test of GoogleTest with its suite; and where one is written.
_TEST = re.compile(r"^[A-Z]\w*\.[A-Z]\w*$")
_WRITTEN_TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(document: str) -> set[str]:
    return {slug(match[1]) for match in _HEADING.finditer(_FENCE.sub("", document))}


def broken_link(root: Path, document: Path, target: str) -> str | None:
    if re.match(r"^[a-z][a-z+.-]*:", target):
        return None
    path, _, anchor = unquote(target).partition("#")
    file = (root / document.parent / path) if path else root / document
    if not file.exists():
        return f"link to {target}, which does not exist"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
        return f"link to {target}, which has no such heading"
    return None


def broken_path(root: Path, text: str) -> str | None:
    first = text.split("/")[0]
    if not _PATH.match(text) or first not in TOP_LEVEL | ENGINE_ROOMS:
        return None
    name = re.sub(r"<[^>]*>", "*", text).rstrip("/")
    if not any(any(base.glob(name)) for base in (root, root / "engine")):
        return f"`{text}` does not exist"
    return None


def written_tests(root: Path) -> set[str]:
    sources = (path for path in walk(root, CPP_SUFFIXES) if path.stem.endswith("_test"))
    return {
        f"{suite}.{name}"
        for source in sources
        for suite, name in _WRITTEN_TEST.findall((root / source).read_text())
    }


def missing_test(tests: set[str], text: str) -> str | None:
    return f"there is no test `{text}`" if _TEST.match(text) and text not in tests else None


def check_document(root: Path, document: Path, tests: set[str]) -> list[str]:
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), (root / document).read_text())
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = [broken_link(root, document, m[1]) for m in _LINK.finditer(_CODE.sub("", line))]
        if document.name not in HISTORY:
            found += [broken_path(root, match[1]) for match in _CODE.finditer(line)]
            found += [missing_test(tests, match[1]) for match in _CODE.finditer(line)]
        problems += [f"{document}:{number}: {problem}" for problem in found if problem]
    return problems


def check(root: Path) -> tuple[int, list[str]]:
    documents = list(walk(root, frozenset({".md"})))
    tests = written_tests(root)
    problems = [
        problem for document in documents for problem in check_document(root, document, tests)
    ]
    return len(documents), problems


def main(arguments: list[str]) -> int:
    checked, problems = check(Path(arguments[0] if arguments else "."))
    return report("documents", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
