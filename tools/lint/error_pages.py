"""Checks that every error code of the library has a page that answers the four questions.

Usage: error_pages.py [ROOT]
"""

import re
import sys
from pathlib import Path

from lint.tree import report

HEADER = Path("engine/include/palmshed/error.h")
PAGES = Path("docs/errors")
SECTIONS = ("Meaning", "Cause", "Recovery", "Is the sandbox still usable")


def codes(header: str) -> set[str]:
    """What the comment behind each enumerator of ErrorCode spells."""
    body = re.search(r"enum class ErrorCode[^{]*{(.*?)};", header, re.DOTALL)
    return set(re.findall(r"///< ([A-Z][A-Z_]+)", body[1])) if body else set()


def page_problems(page: Path, code: str) -> list[str]:
    if not page.is_file():
        return [f"{code} has no page"]
    parts = re.split(r"^## (.*)\n", page.read_text(), flags=re.MULTILINE)
    said = dict(zip(parts[1::2], parts[2::2]))
    return [f"{code}: nothing under {s!r}" for s in SECTIONS if not said.get(s, "").strip()]


def check(root: Path) -> tuple[int, list[str]]:
    known = codes((root / HEADER).read_text())
    problems = []
    for code in sorted(known):
        problems += page_problems(root / PAGES / f"{code}.md", code)
    for page in sorted((root / PAGES).glob("[A-Z]*.md")):
        if page.stem not in known | {"README"}:
            problems.append(f"{page.stem} is no error code")
    return len(known), problems


def main(arguments: list[str]) -> int:
    checked, problems = check(Path(arguments[0] if arguments else "."))
    return report("error pages", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
