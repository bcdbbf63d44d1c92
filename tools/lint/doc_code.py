"""Compiles the C++ that the documents show, against the public headers.

A block with a main() stands alone; any other is put into a function that has an engine and a sandbox.

Usage: doc_code.py [ROOT]
"""

import re
import subprocess
import sys
from pathlib import Path

from lint.tree import report, walk

HEADERS = Path("engine/include")
PRELUDE = """#include <chrono>
#include <iostream>
#include <span>
#include <thread>
#include "palmshed/palmshed.h"
using namespace palmshed::literals;
"""
_BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMPILE = ["g++", "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
_COMPILE += ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-x", "c++", "-"]


def blocks(document: str) -> list[tuple[int, str]]:
    """The C++ blocks of a document, each with the line that it starts on."""
    return [(document.count("\n", 0, m.start(1)) + 1, m[1]) for m in _BLOCK.finditer(document)]


def programs(name: str, document: str) -> list[str]:
    """Translation units: one for each block with a main(), and one for all others together."""
    alone, snippets = [], []
    for line, code in blocks(document):
        located = f'#line {line} "{name}"\n{code}'
        if "int main(" in code:
            alone.append(located)
        else:
            head = f"void Block{line}(palmshed::Engine& engine, palmshed::Sandbox& sandbox) {{"
            snippets.append(f"{head} (void)engine; (void)sandbox; {{\n{located}}} }}\n")
    return alone + ([PRELUDE + "".join(snippets)] if snippets else [])


def compile_errors(root: Path, program: str) -> list[str]:
    run = subprocess.run(
        [*_COMPILE, f"-I{root / HEADERS}"], input=program, capture_output=True, text=True, check=False
    )
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return errors or ([run.stderr] if run.returncode else [])


def check(root: Path) -> tuple[int, list[str]]:
    checked, problems = 0, []
    for path in walk(root, frozenset({".md"})):
        document = (root / path).read_text()
        checked += len(blocks(document))
        for program in programs(str(path), document):
            problems += compile_errors(root, program)
    return checked, problems


def main(arguments: list[str]) -> int:
    checked, problems = check(Path(arguments[0] if arguments else "."))
    return report("code in documents", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
