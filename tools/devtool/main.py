"""The verbs of tools/dev."""

import argparse
import os

from devtool import tidy
from devtool.checkout import BUILD, ROOT, python, run
from devtool.packages import setup
from devtool.runner import run_suites
from devtool.suites import LINTS, SUITES, api_reference, applicable, configure_and_build

DEMONSTRATION = ("run", "--", "python3", "-c", "print(6 * 7)")


def build(preset: str) -> int:
    for command in configure_and_build(preset):
        status = run(*command)
        if status:
            return status
    return 0


def build_and_run() -> int:
    """From nothing to a program's output out of a sandbox."""
    status = setup() or build("release")
    if status:
        return status
    command = [str(BUILD / "release/bin/palmshed"), *DEMONSTRATION]
    print("$", " ".join(command), flush=True)
    return run(*command)


def test(names: list[str]) -> int:
    unknown = set(names) - {suite.name for suite in SUITES}
    if unknown:
        print("no such suite:", ", ".join(sorted(unknown)))
        return 2
    status = setup()
    if status:
        return status
    suites = [suite for suite in applicable() if not names or suite.name in names]
    for suite in SUITES:
        if suite.for_root and os.geteuid() != 0:
            print(f"{suite.name}: left out, needs root")
    return run_suites(suites)


def lint(fix: bool) -> int:
    if fix:
        return run(*python("lint.formatting", "--fix"))
    return run_suites([suite for suite in SUITES if suite.name in LINTS])


def docs() -> int:
    status = run(*api_reference())
    print("written to", (BUILD / "docs/api/index.md").relative_to(ROOT))
    return status


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tools/dev", description="Everything a developer does here.")
    verbs = top.add_subparsers(dest="verb", required=True)
    verbs.add_parser("setup", help="install the packages that are missing")
    builds = verbs.add_parser("build", help="configure and build a preset")
    builds.add_argument("preset", nargs="?", default="dev")
    verbs.add_parser("run", help="set up, build and run a program in a sandbox")
    tests = verbs.add_parser("test", help="run every suite, or those named")
    tests.add_argument("suite", nargs="*", help="names of suites; see --list")
    tests.add_argument("--list", action="store_true", help="print the names of the suites")
    lints = verbs.add_parser("lint", help="run the checks of the sources and documents")
    lints.add_argument("--fix", action="store_true", help="format instead of checking")
    tidies = verbs.add_parser("tidy", help="run clang-tidy on what has changed")
    tidy.add_arguments(tidies)
    verbs.add_parser("docs", help="write the API reference")
    return top


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.verb == "setup":
        return setup()
    if options.verb == "build":
        return build(options.preset)
    if options.verb == "run":
        return build_and_run()
    if options.verb == "test" and options.list:
        print("\n".join(suite.name for suite in SUITES))
        return 0
    if options.verb == "test":
        return test(options.suite)
    if options.verb == "lint":
        return lint(options.fix)
    if options.verb == "tidy":
        return tidy.tidy(options)
    return docs()
