"""The places that name a version, held against each other before a release."""

import json
import re
import subprocess
from pathlib import Path

_CHANGELOG_SECTION = re.compile(r"^## \[?(\d+\.\d+\.\d+)\]?", re.MULTILINE)


def _found(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def tag_of_head(root: Path) -> str:
    """Without its v; empty when there is none."""
    command = ["git", "-c", f"safe.directory={root}", "tag", "--points-at", "HEAD", "--list", "v*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.split()[0].removeprefix("v") if done.stdout.split() else ""


def spec_problems(root: Path) -> list[str]:
    """The version of the specification: the library's, its page, its changelog, every schema."""
    spec = root / "spec"
    version = _found(r"^The current version is \*\*([\d.]+)\*\*", spec / "version.md")
    stated = {
        "engine/include/palmshed/version.h": _found(
            r'kSpecVersion\[\] = "([^"]+)"', root / "engine/include/palmshed/version.h"
        ),
        "spec/CHANGELOG.md": _found(_CHANGELOG_SECTION.pattern, spec / "CHANGELOG.md"),
    }
    for path in sorted((spec / "schemas").glob("*.json")):
        identifier = json.loads(path.read_text(encoding="utf-8")).get("$id", "")
        match = re.search(r"/spec/([\d.]+)/", identifier)
        stated[f"spec/schemas/{path.name}"] = match[1] if match else ""
    wrong = {place: said for place, said in stated.items() if said != version}
    return [f"{place} says {said or 'nothing'}, spec/version.md {version}" for place, said in wrong.items()]


def library_problems(root: Path, tag: str) -> list[str]:
    """The version of the library: README, changelog and tag. `tag`: empty for a rehearsal."""
    version = _found(r'kVersion\[\] = "([^"]+)"', root / "engine/include/palmshed/version.h")
    problems = []
    said = _found(r"^This is version ([\d.]+?)\.\s", root / "README.md")
    if said != version:
        problems.append(f"README.md says {said or 'nothing'}, version.h {version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = _CHANGELOG_SECTION.findall(changelog)
    if tag and tag != version:
        problems.append(f"the tag is v{tag}, version.h says {version}")
    if tag and sections[:1] != [version]:
        problems.append(f"CHANGELOG.md has no section {version} above the others")
    if not tag and version in sections:
        problems.append(f"CHANGELOG.md has a section {version}, but nothing is tagged v{version}")
    return problems
