"""The command line: run, list."""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runner.subreaper import adopt_orphans

from suite import development, isolation, steadiness
from suite.building import CannotBuild, build
from suite.residue import nothing_left
from suite.soak import soak
from suite.stage import Stage, Violation

PASSED, FAILED, WRONG = 0, 1, 2

SCENARIOS: dict[str, Callable[[Stage], None]] = {
    "coding-agent": development.coding_agent,
    "ci-runner": development.ci_runner,
    "code-evaluation": development.code_evaluation,
    "concurrency": steadiness.concurrency,
    "recovery": steadiness.recovery,
    "crash-recovery": steadiness.crash_recovery,
    "resilience": steadiness.resilience,
    "filesystem-isolation": isolation.filesystem,
    "network-isolation": isolation.network,
    "soak": soak,
}


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="production", description="Scenarios of production use, against an installed package."
    )
    parser.add_argument("--list", action="store_true", help="show the scenarios")
    parser.add_argument("--prefix", type=Path, metavar="DIR", help="where the package is installed")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this; may be repeated"
    )
    parser.add_argument("--full", action="store_true", help="the long figures")
    parser.add_argument(
        "--seconds", type=_positive, metavar="S", help="how long the soak goes on; 12, with --full 300"
    )
    parser.add_argument(
        "--iterations", type=_positive, metavar="N", help="after how many rounds the soak ends"
    )
    parser.add_argument("--verbose", action="store_true", help="show each step with its time")
    arguments = parser.parse_args(words)
    # With a number of rounds alone, these decide.
    otherwise = math.inf if arguments.iterations else (300 if arguments.full else 12)
    arguments.seconds = arguments.seconds or otherwise
    arguments.iterations = arguments.iterations or sys.maxsize
    return arguments


def _run_one(name: str, arguments: argparse.Namespace, programs: Path) -> list[str]:
    """What was wrong."""
    wrong: list[str] = []
    began = time.monotonic()
    with nothing_left() as left, tempfile.TemporaryDirectory(prefix="production-") as work:
        stage = Stage(
            prefix=arguments.prefix.resolve(),
            programs=programs,
            work=Path(work),
            full=arguments.full,
            verbose=arguments.verbose,
            soak_seconds=arguments.seconds,
            soak_iterations=arguments.iterations,
        )
        try:
            SCENARIOS[name](stage)
        except Violation as violation:
            wrong.append(str(violation))
    wrong += [f"left behind: {item}" for item in left]
    told = "".join(f"; {note}" for note in stage.notes)
    print(f"{'not ok' if wrong else 'ok'} {name} ({time.monotonic() - began:.1f} s{told})", flush=True)
    for line in wrong:
        print(f"    {line}", flush=True)
    return wrong


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    if arguments.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:<22} {(scenario.__doc__ or '').splitlines()[0]}")
        return PASSED
    unknown = set(arguments.only) - SCENARIOS.keys()
    if unknown or arguments.prefix is None:
        print("no such scenario: " + ", ".join(sorted(unknown)) if unknown else "--prefix is missing", file=sys.stderr)
        return WRONG
    adopt_orphans()
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="production-build-") as directory:
        try:
            programs = build(arguments.prefix.resolve(), Path(directory))
        except CannotBuild as error:
            print(error, file=sys.stderr)
            return WRONG
        names = [name for name in SCENARIOS if not arguments.only or name in arguments.only]
        failed = sum(bool(_run_one(name, arguments, programs)) for name in names)
    print(f"{len(names) - failed} passed, {failed} failed")
    return FAILED if failed else PASSED
