"""Checks that clang-format would change nothing.

Usage: formatting.py [--fix] [ROOT]
"""

import subprocess
import sys
from pathlib import Path

from lint.tree import CPP_SUFFIXES, report, walk

CLANG_FORMAT = "clang-format-19"


def check(root: Path, fix: bool = False) -> tuple[int, list[str]]:
    files = [str(path) for path in walk(root, CPP_SUFFIXES)]
    if not files:
        return 0, []
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    run = subprocess.run(
        [CLANG_FORMAT, *mode, *files], cwd=root, stderr=subprocess.PIPE, text=True, check=False
    )
    problems = [line for line in run.stderr.splitlines() if "error:" in line]
    if run.returncode != 0 and not problems:
        problems = [run.stderr.strip() or f"{CLANG_FORMAT} failed"]
    return len(files), problems


def main(arguments: list[str]) -> int:
    fix = "--fix" in arguments
    roots = [argument for argument in arguments if argument != "--fix"]
    checked, problems = check(Path(roots[0] if roots else "."), fix)
    return report("formatting", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
