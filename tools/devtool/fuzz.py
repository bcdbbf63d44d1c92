"""Runs the fuzzers of tests/fuzz (libFuzzer). Prints "ok"/"not ok" lines.

Usage: fuzz.py [--seconds S] [FUZZER...]

What reaches new code is kept in build/fuzz, so that a later run goes on from there; so is an input that fails.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from devtool.checkout import BUILD, ROOT, run
from devtool.suites import configure_and_build

PRESET = "asan-ubsan"
SOURCES = ROOT / "tests/fuzz"
FOUND = BUILD / "fuzz"
FIRST = 48  # Inputs, up to 3 KiB.
SLACK_S = 120  # For what is kept to be read, and the last input to end.


@dataclass(frozen=True)
class Verdict:
    runs: int
    problem: str  # Empty: none.


def fuzzers() -> list[str]:
    return sorted(path.stem.removesuffix("_fuzz") for path in SOURCES.glob("*_fuzz.cc"))


def read(status: int, said: str) -> Verdict:
    """A run that tried nothing has failed."""
    counted = re.search(r"^stat::number_of_executed_units: (\d+)$", said, re.MULTILINE)
    runs = int(counted[1]) if counted else 0
    if status != 0:
        return Verdict(runs, said or f"ended with status {status}")
    return Verdict(runs, "" if runs else f"it tried nothing\n{said}")


def begin(kept: Path) -> None:
    """A fuzzer that draws values off its input needs input that is long and varied, and libFuzzer begins with none."""
    kept.mkdir(parents=True, exist_ok=True)
    for number in range(FIRST):
        (kept / f"first-{number}").write_bytes(random.Random(number).randbytes(64 * (number + 1)))


def run_fuzzer(name: str, seconds: int) -> Verdict:
    kept = FOUND / name
    begin(kept)
    limits = [f"-max_total_time={seconds}", "-max_len=4096", "-len_control=0", "-timeout=20"]
    output = ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={FOUND}/{name}-"]
    command = [str(BUILD / PRESET / "bin" / f"{name}_fuzz"), *limits, *output, str(kept)]
    with tempfile.TemporaryDirectory(prefix="palmshed-fuzz-") as scratch:
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "TMPDIR": scratch},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds + SLACK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict(0, f"it did not end {SLACK_S} s after its time")
    return read(done.returncode, done.stdout)


def fuzz(names: list[str], seconds: int) -> int:
    known = fuzzers()
    if unknown := set(names) - set(known):
        print("no such fuzzer:", ", ".join(sorted(unknown)))
        return 2
    for command in configure_and_build(PRESET, targets=("fuzzers",)):
        if status := run(*command):
            return status
    failed = False
    for name in names or known:
        verdict = run_fuzzer(name, seconds)
        failed = failed or bool(verdict.problem)
        state = "not ok" if verdict.problem else "ok"
        print(f"{state} {name}: {verdict.runs} inputs in {seconds} s", flush=True)
        if verdict.problem:
            print(verdict.problem, flush=True)
    return 1 if failed else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fuzzer", nargs="*", help="only these: " + ", ".join(fuzzers()))
    parser.add_argument("--seconds", type=int, default=60, metavar="S", help="of each; 60")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Runs the fuzzers.")
    add_arguments(arguments)
    chosen = arguments.parse_args()
    sys.exit(fuzz(chosen.fuzzer, chosen.seconds))
