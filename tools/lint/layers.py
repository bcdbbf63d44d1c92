"""Checks the one-way dependencies of docs/architecture.md by reading #include lines.

Usage: layers.py [ROOT]
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from lint.tree import CPP_SUFFIXES, report, walk

PUBLIC = "public"  # engine/include/palmshed
BACKEND = "backends/*"  # any backends/<name>/
TESTS = "tests"

# Room -> what it may include beside itself. The order is that of a request's way.
ALLOWED: dict[str, frozenset[str]] = {
    PUBLIC: frozenset(),
    "base": frozenset({PUBLIC}),
    "model": frozenset({PUBLIC, "base"}),
    "plan": frozenset({PUBLIC, "base", "model"}),
    "workspace": frozenset({PUBLIC, "base"}),
    "run": frozenset({PUBLIC, "base", "model", "plan", "workspace", "backends"}),
    "backends": frozenset({PUBLIC, "base", "plan"}),
    BACKEND: frozenset({PUBLIC, "base", "plan", "workspace", "kernel", "child", "backends"}),
    "kernel": frozenset({PUBLIC, "base"}),
    "child": frozenset(),  # Built without the C++ runtime: it sees itself alone.
    "cli": frozenset({PUBLIC}),
    "daemon": frozenset({PUBLIC}),
    "examples": frozenset({PUBLIC}),
    "benchmarks": frozenset({PUBLIC}),
    "production": frozenset({PUBLIC}),
}
SEES_ALL = frozenset({TESTS, "conformance"})
REGISTRY = Path("engine/backends/registry.cc")
BACKEND_INTERFACE = Path("engine/backends/backend.h")

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_STANDARD_HEADER = re.compile(r"^[a-z_0-9]+$")


@dataclass(frozen=True)
class Include:
    name: str
    quoted: bool
    line: int


def room_of(path: Path) -> str | None:
    """The room that a file of the repository belongs to; None for a file outside every room."""
    parts = path.parts
    if parts[0] != "engine":
        return parts[0] if parts[0] in ALLOWED or parts[0] in SEES_ALL else None
    if parts[1:3] == ("include", "palmshed"):
        return PUBLIC
    if parts[1] == "backends" and len(parts) > 3:
        return f"backends/{parts[2]}"
    return parts[1] if parts[1] in ALLOWED else None


def includes_of(text: str) -> list[Include]:
    return [
        Include(match[2], match[1] == '"', text.count("\n", 0, match.start(2)) + 1)
        for match in _INCLUDE.finditer(text)
    ]


def resolve(root: Path, source: Path, name: str) -> Path | None:
    """The file of ours that an include means, existing or generated; None for a foreign one."""
    top = Path(source.parts[0])
    for base in (Path("engine/include"), Path("engine"), Path("."), top, source.parent):
        if (root / base / name).is_file():
            return base / name
    first = name.split("/")[0]
    if first == "palmshed":
        return Path("engine/include", name)
    if "/" in name and first in ALLOWED:  # Generated at build time.
        return Path("engine", name)
    return None


def may_include(source: Path, target: Path) -> bool:
    room, other = room_of(source), room_of(target)
    if room in SEES_ALL or source.stem.endswith("_test") or room == other:
        return True
    if room is None or other is None:
        return False
    if other.startswith("backends/"):
        return source == REGISTRY
    if room == "run" and other == "backends":
        return target == BACKEND_INTERFACE
    return other in ALLOWED[BACKEND if room.startswith("backends/") else room]


def check_include(root: Path, source: Path, include: Include) -> str | None:
    """What is wrong with one include; None when nothing is."""
    where = f"{source}:{include.line}"
    target = resolve(root, source, include.name)
    if target is None:
        if include.quoted:
            return f'{where}: "{include.name}" is no file of this repository'
        if room_of(source) == PUBLIC and not _STANDARD_HEADER.match(include.name):
            return f"{where}: a public header includes <{include.name}>; only the standard library may"
        return None
    if not may_include(source, target):
        return f"{where}: {room_of(source)} must not include {include.name} ({room_of(target)})"
    return None


def check_rooms(root: Path, sources: list[Path]) -> list[str]:
    """Folders with code must stand under "Rooms" in docs/architecture.md, and the reverse."""
    document = root / "docs/architecture.md"
    if not document.is_file():
        return ["docs/architecture.md is missing"]
    listed = listed_rooms(document.read_text())
    present = {folder_of(source) for source in sources}
    problems = [
        f"{folder}/ holds code and is not listed under Rooms" for folder in sorted(present - listed)
    ]
    problems += [
        f"docs/architecture.md lists {folder}/, which does not exist"
        for folder in sorted(listed)
        if not (root / folder).is_dir()
    ]
    return problems


def folder_of(source: Path) -> str:
    depth = 2 if source.parts[0] == "engine" and len(source.parts) > 2 else 1
    return "/".join(source.parts[:depth])


def listed_rooms(text: str) -> set[str]:
    """Paths of the tree drawn in the fenced block below the heading "Rooms"."""
    block = re.search(r"^## Rooms\n.*?```\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    rooms: set[str] = set()
    parent = ""
    for line in (block[1] if block else "").splitlines():
        entry = re.match(r"^( *)([\w./-]+)/ ", line)
        if not entry:
            continue
        if not entry[1]:
            parent = entry[2]
        rooms.add(f"{parent}/{entry[2]}" if entry[1] else parent)
    return rooms


def check(root: Path) -> tuple[int, list[str]]:
    sources = list(walk(root, CPP_SUFFIXES))
    problems = check_rooms(root, sources)
    for source in sources:
        for include in includes_of((root / source).read_text()):
            problem = check_include(root, source, include)
            if problem:
                problems.append(problem)
    return len(sources), problems


def main(arguments: list[str]) -> int:
    checked, problems = check(Path(arguments[0] if arguments else "."))
    return report("layers", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
