"""Runs clang-tidy over a choice of the files in a compilation database.

Usage: tidy.py [--all | FILE...] [--fix]; by default what differs from the main branch.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devtool.checkout import BUILD, ROOT, jobs

CLANG_TIDY = "clang-tidy-19"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="*", help="sources to check")
    parser.add_argument("--all", action="store_true", help="every source")
    parser.add_argument("--fix", action="store_true", help="mend what can be mended")
    parser.add_argument("--preset", default="dev", help="the build tree to read flags from")


def database(build: Path) -> list[Path]:
    """Sources that the build compiles, relative to the checkout."""
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {Path(command["file"]).resolve() for command in commands}
    return sorted(file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT))


def changed() -> set[Path]:
    """Sources that differ from where this branch left the main one, uncommitted ones included."""
    for main_branch in ("origin/main", "main"):
        base = subprocess.run(
            ["git", "merge-base", "HEAD", main_branch], cwd=ROOT, capture_output=True, text=True
        )
        if base.returncode == 0:
            break
    point = base.stdout.strip() or "HEAD"
    listing = subprocess.run(
        ["git", "diff", "--name-only", point], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {Path(name) for name in listing.stdout.splitlines()}


def chosen(options: argparse.Namespace, sources: list[Path]) -> list[Path]:
    sources = [source for source in sources if source.suffix == ".cc"]
    if options.all:
        return sources
    wanted = {Path(name).resolve().relative_to(ROOT) for name in options.file} or changed()
    return [source for source in sources if source in wanted]


def check(build: Path, source: Path, fix: bool) -> tuple[Path, int, str]:
    mode = ["--fix", "--format-style=file"] if fix else []
    run = subprocess.run(
        [CLANG_TIDY, "-p", str(build), "--quiet", *mode, str(source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return source, run.returncode, run.stdout + (run.stderr if run.returncode else "")


def tidy(options: argparse.Namespace) -> int:
    build = BUILD / options.preset
    sources = chosen(options, database(build))
    bad = 0
    at_once = 1 if options.fix else jobs()  # Two must not mend one header at the same time.
    with ThreadPoolExecutor(at_once) as pool:
        for source, status, output in pool.map(lambda s: check(build, s, options.fix), sources):
            if status:
                bad += 1
                print(f"{source}:\n{output}", flush=True)
    print(f"tidy: {len(sources)} checked, {bad} with problems")
    if not sources and options.all:
        return 1
    return 1 if bad else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tidy")
    add_arguments(parser)
    return tidy(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
