"""Compares what the helper's objects need from outside with the list of what they may need.

Code between clone and exec must not reach an allocator, a lock or the C++ runtime; what it may call
stands in engine/child/allowed_symbols.txt, one name a line, `#` starts a comment.

Usage: child_symbols.py ALLOWED OBJECT...
"""

import subprocess
import sys
from pathlib import Path

from lint.tree import report


def symbols(objects: list[Path]) -> tuple[set[str], set[str]]:
    """Names that the objects define, and names that they leave undefined, together."""
    defined: set[str] = set()
    undefined: set[str] = set()
    listing = subprocess.run(
        ["nm", "--format=posix", *map(str, objects)], check=True, capture_output=True, text=True
    )
    for line in listing.stdout.splitlines():
        fields = line.split()
        if len(fields) < 2 or len(fields[1]) != 1:
            continue  # The heading of an object.
        (undefined if fields[1] in "Uvw" else defined).add(fields[0])
    return defined, undefined - defined


def allowed_names(path: Path) -> set[str]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {line for line in lines if line}


def check(allowed_file: Path, objects: list[Path]) -> tuple[int, list[str]]:
    if not objects:
        return 0, []
    allowed = allowed_names(allowed_file)
    needed = symbols(objects)[1]
    problems = [f"{name} is needed and not allowed" for name in sorted(needed - allowed)]
    problems += [f"{name} is allowed and not needed" for name in sorted(allowed - needed)]
    return len(objects), problems


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__)
        return 2
    checked, problems = check(Path(arguments[0]), [Path(name) for name in arguments[1:]])
    return report("child symbols", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
