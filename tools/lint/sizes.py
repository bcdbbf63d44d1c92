"""Checks the budget of CONTRIBUTING.md for the length of a source file.

The length of functions is checked by clang-tidy (readability-function-size).

Usage: sizes.py [ROOT]
"""

import sys
from pathlib import Path

from lint.tree import CPP_SUFFIXES, report, walk

MOST_LINES = 600
SUFFIXES = CPP_SUFFIXES | {".c", ".S", ".py"}


def check(root: Path) -> tuple[int, list[str]]:
    problems = []
    checked = 0
    for path in walk(root, SUFFIXES):
        lines = len((root / path).read_bytes().splitlines())
        checked += 1
        if lines > MOST_LINES:
            problems.append(f"{path}: {lines} lines; look for a second concern ({MOST_LINES} at most)")
    return checked, problems


def main(arguments: list[str]) -> int:
    checked, problems = check(Path(arguments[0] if arguments else "."))
    return report("sizes", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
