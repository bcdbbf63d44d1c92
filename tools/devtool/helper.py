"""Finds the helper's objects in a build tree and checks their symbols.

Usage: helper.py PRESET
"""

import sys
from pathlib import Path

from devtool.checkout import BUILD, ROOT
from lint.child_symbols import main as check_symbols

ALLOWED = ROOT / "engine/child/allowed_symbols.txt"


def objects(preset: str) -> list[Path]:
    """What is linked into palmshed-init, as CMake's object library of that name keeps it."""
    library = BUILD / preset / "engine/child/CMakeFiles/palmshed_init_objects.dir"
    return sorted(library.rglob("*.o"))


def main(arguments: list[str]) -> int:
    found = objects(arguments[0])
    if not found:
        print(f"no objects of engine/child in {BUILD / arguments[0]}")
        return 1
    return check_symbols([str(ALLOWED), *map(str, found)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
