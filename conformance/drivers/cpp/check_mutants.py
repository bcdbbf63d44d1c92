#!/usr/bin/env python3
"""Checks that the kit notices every deliberate defect of the driver's test build.

For each entry of mutants.toml the case that it names is run alone against the driver with that defect, and must
fail: not be skipped, not be an error of the kit. It may be skipped only where the engine's own self-test has found
out, so that a capability goes missing which the profile demands. Before that the same cases are run against the test build without a
defect, and must pass.

Usage: check_mutants.py MUTANT [--profile P] [--probes DIR] [NAME...]
  MUTANT  the program palmshed_conformance_mutant
  NAME    only these defects
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIT = HERE.parent.parent / "conformance"
PATIENCE_S = 300
NO_DEFECT = "none"  # Names that begin like this are no defects.


@dataclass(frozen=True)
class Mutant:
    name: str
    case: str
    what: str
    baseline: str = NO_DEFECT  # Without the defect, on the kind of host that the case needs.


def listed() -> list[Mutant]:
    document = tomllib.loads((HERE / "mutants.toml").read_text())
    return [Mutant(**entry) for entry in document["mutant"]]


def known(program: Path) -> set[str]:
    """The defects that the program has, which it prints when it is given none."""
    said = subprocess.run([program], env={}, capture_output=True, text=True, check=False).stderr
    return {name for name in said.splitlines()[1:] if not name.startswith(NO_DEFECT)}


@dataclass(frozen=True)
class Seen:
    statuses: dict[str, str]  # Of each case.
    problems: frozenset[str]  # Capabilities that the profile misses.


class Kit:
    def __init__(self, arguments: argparse.Namespace):
        self._program = arguments.mutant.resolve()
        self._options = ["--profile", arguments.profile] if arguments.profile else []
        self._options += ["--probes", str(arguments.probes)] if arguments.probes else []

    def run(self, mutant: str, cases: set[str]) -> Seen:
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory) / "report.json"
            command = [sys.executable, str(KIT), "run", "--checked", *self._options, "--json", str(report)]
            command += ["--driver", f"env PALMSHED_MUTANT={mutant} {self._program}"]
            command += [word for case in sorted(cases) for word in ("--only", case)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            if not report.exists():
                print(f"{mutant}: the kit made no report\n{done.stdout}{done.stderr}")
                return Seen({}, frozenset())
            document = json.loads(report.read_text())
            statuses = {case["id"]: case["status"] for case in document["cases"]}
            return Seen(statuses, frozenset(document["problems"]))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mutant", type=Path)
    parser.add_argument("--profile")
    parser.add_argument("--probes", type=Path)
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_intermixed_args()
    mutants = listed()
    unlisted = known(arguments.mutant) ^ {mutant.name for mutant in mutants}
    if unlisted:
        print(f"either listed or known to the program, but not both: {', '.join(sorted(unlisted))}")
        return 1
    chosen = [mutant for mutant in mutants if not arguments.name or mutant.name in arguments.name]
    kit = Kit(arguments)
    problems, missing = [], {}
    for baseline in sorted({mutant.baseline for mutant in chosen}):
        faithful = kit.run(baseline, {mutant.case for mutant in chosen if mutant.baseline == baseline})
        missing[baseline] = faithful.problems
        problems += [
            f"without a defect: {case} {status}"
            for case, status in faithful.statuses.items()
            if status != "passed"
        ]
    for mutant in chosen:
        seen = kit.run(mutant.name, {mutant.case})
        status = seen.statuses.get(mutant.case, "not run")
        # A case of what the engine itself has found not to work is skipped, and the profile misses it.
        found_out = status == "skipped" and seen.problems - missing[mutant.baseline]
        if status != "failed" and not found_out:
            problems.append(f"{mutant.name}: {mutant.case} {status} ({mutant.what})")
    for problem in problems:
        print(problem)
    print(f"{len(chosen)} defects, {len(problems)} problems")
    return 1 if problems or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
