"""Prints the declarations that api_docs.py has read as Markdown pages."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lint.api_docs import Declaration


def body(declaration: Declaration) -> list[str]:
    return [text + "\n" for text in (declaration.brief, declaration.details) if text]


def row(declaration: Declaration) -> str:
    words = " ".join(part for part in (declaration.brief, declaration.details) if part)
    return f"| `{declaration.text}` | {words} |".replace("\n", " ")


def member_section(member: Declaration) -> list[str]:
    lines = [f"## {member.name.split('::')[-1]}\n", f"```cpp\n{member.text};\n```\n", *body(member)]
    if member.members:
        lines += ["| value | meaning |\n| --- | --- |", *map(row, member.members), ""]
    return lines


def page(compound: Declaration) -> str:
    lines = [f"# {compound.name}\n", *body(compound)]
    fields = [member for member in compound.members if member.kind == "variable"]
    if fields:
        lines += ["| member | meaning |\n| --- | --- |", *map(row, fields), ""]
    for member in compound.members:
        if member.kind != "variable":
            lines += member_section(member)
    return "\n".join(lines).rstrip() + "\n"


def file_name(compound: Declaration) -> str:
    return compound.name.replace("::", "-") + ".md"


def summary(compound: Declaration) -> str:
    """The first sentence about it."""
    words = compound.brief or compound.details or "Functions, enumerations and constants."
    return re.split(r"(?<=\.) ", words.replace("\n", " "), maxsplit=1)[0]


def write_pages(compounds: list[Declaration], directory: Path) -> None:
    """Replaces the pages in `directory`: one for each type, and an index."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    lines = ["# API reference\n"]
    for compound in compounds:
        if compound.kind == "namespace" and not compound.members:
            continue
        (directory / file_name(compound)).write_text(page(compound))
        lines.append(f"- [{compound.name}]({file_name(compound)}): {summary(compound)}")
    (directory / "index.md").write_text("\n".join(lines) + "\n")
