"""Finds the helper's objects in a build tree and checks their symbols.

Usage: helper.py PRESET
"""

import sys
from pathlib import Path

from devtool.checkout import BUILD, ROOT
from lint.child_symbols import main as check_symbols

ALLOWED = ROOT / "engine/child/allowed_symbols.txt"


def objects(preset: str) -> list[Path]:
    """What is linked into palmshed-init: everything built in engine/child but tests."""
    built = (BUILD / preset / "engine/child").rglob("*.cc.o")
    return sorted(path for path in built if not path.name.endswith("_test.cc.o"))


def main(arguments: list[str]) -> int:
    found = objects(arguments[0])
    if not found:
        print(f"no objects of engine/child in {BUILD / arguments[0]}")
        return 1
    return check_symbols([str(ALLOWED), *map(str, found)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
