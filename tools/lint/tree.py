"""The files of a checkout, as the lints see them."""

import os
from collections.abc import Iterator
from pathlib import Path

CPP_SUFFIXES = frozenset({".h", ".cc"})
_SKIPPED = frozenset({"build", "node_modules", "__pycache__"})


def walk(root: Path, suffixes: frozenset[str]) -> Iterator[Path]:
    """Yields the files with one of `suffixes` below `root`, sorted, relative to it."""
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in _SKIPPED and not n.startswith("."))
        for name in sorted(files):
            path = Path(directory, name)
            if path.suffix in suffixes:
                yield path.relative_to(root)


def report(tool: str, checked: int, problems: list[str]) -> int:
    """Prints the outcome of a lint and returns its exit status. Having checked nothing is a failure."""
    for problem in problems:
        print(problem)
    if checked == 0:
        print(f"{tool}: found nothing to check")
        return 1
    print(f"{tool}: {checked} checked, {len(problems)} problems")
    return 1 if problems else 0
