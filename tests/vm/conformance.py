#!/usr/bin/env python3
"""Runs the conformance kit in a guest that is thrown away: against no sandbox at all, and against bubblewrap.

    conformance.py [unconfined] [bubblewrap] --reports DIR

The driver that isolates nothing must fail. What it may pass all the same stands in unconfined_may_pass.toml with the
reason; that it passes anything else means that a case of the kit shows nothing. Bubblewrap is not judged here:
its report shows what a good peer gets. Each report is written as JSON and as Markdown.
"""

import argparse
import fnmatch
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

import kernels  # noqa: E402
import machine  # noqa: E402
import verdict  # noqa: E402
from image import NoImage  # noqa: E402

HERE = Path(__file__).resolve().parent
DRIVERS = ("unconfined", "bubblewrap")
ALL_PASSED, SOME_FAILED = 0, 1  # Exit codes of the kit.
SIGNALLED = range(129, 193)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=" or ".join(DRIVERS))
    parser.add_argument("--checkout", type=Path, default=HERE.parents[1], metavar="DIR")
    parser.add_argument("--probes", type=Path, metavar="DIR", help="else the newest below build/")
    parser.add_argument("--reports", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kernel", choices=sorted(kernels.NAMES), default=kernels.DEFAULT)
    parser.add_argument("--as", choices=("root", "user"), default="user", dest="user")
    parser.add_argument("--timeout", type=float, default=2400.0, metavar="S", help="of each run")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="these cases")
    parser.add_argument("--processors", type=int, default=1, metavar="N")
    arguments = parser.parse_args(words)
    arguments.drivers = arguments.drivers or list(DRIVERS)
    if unknown := set(arguments.drivers) - set(DRIVERS):
        parser.error(f"no such driver here: {', '.join(sorted(unknown))}")
    arguments.checkout = arguments.checkout.absolute()
    return arguments


def _probes(arguments: argparse.Namespace) -> Path:
    if arguments.probes:
        return Path(arguments.probes).absolute()
    built = list(arguments.checkout.glob("build/*/conformance/probes"))
    if not built:
        raise machine.GuestFailed("the probes are not built: the target palmshed_conformance_probes")
    return max(built, key=lambda path: path.stat().st_mtime)


def _kit(driver: str, names: Iterable[str], arguments: argparse.Namespace) -> machine.Ended:
    """Runs these cases over this driver in one guest."""
    checkout, probes = arguments.checkout, _probes(arguments)
    words = [str(checkout / "conformance" / "conformance"), "run", "--profile", arguments.user]
    words += ["--driver", f"conformance/drivers/{driver}.py", "--probes", str(probes)]
    words += ["--jobs", str(arguments.processors)]
    words += ["--json", f"{machine.RESULTS}/{driver}.json"]
    words += ["--markdown", f"{machine.RESULTS}/{driver}.md"]
    words += [word for name in names for word in ("--only", name)]
    request = machine.Request(
        args=tuple(words),
        trees=(checkout / "conformance", checkout / "spec", probes),
        kernel=arguments.kernel,
        user=arguments.user,
        timeout_s=arguments.timeout,
        directory=str(checkout),
        results=arguments.reports,
        processors=arguments.processors,
    )
    return machine.run(request, sys.stdout.buffer, sys.stderr.buffer)


def _report(driver: str, names: Iterable[str], arguments: argparse.Namespace) -> dict[str, Any]:
    written = arguments.reports / f"{driver}.json"
    written.unlink(missing_ok=True)
    ended = _kit(driver, names, arguments)
    if ended.exit_code not in (ALL_PASSED, SOME_FAILED) or not written.exists():
        why = "the time limit" if ended.late else f"the exit code {ended.exit_code}"
        raise machine.GuestFailed(f"the kit came to no end over {driver}: {why}")
    report = dict(json.loads(written.read_text()))
    counts = ", ".join(f"{number} {status}" for status, number in report["counts"].items())
    print(f"ok {driver} was run: {counts}", flush=True)
    return report


def _unconfined(names: list[str], arguments: argparse.Namespace) -> list[str]:
    expected = verdict.load(arguments.user)
    found = []
    for name in sorted(expected.ends_the_kit.intersection(names)):
        ended = _kit("unconfined", [name], arguments)
        if ended.exit_code not in (SOME_FAILED, *SIGNALLED):
            found.append(f"{name} neither fails nor ends the kit: exit code {ended.exit_code}")
    others = [name for name in names if name not in expected.ends_the_kit]
    if others:
        found += verdict.of_report(expected, _report("unconfined", others, arguments))
    return found


def _problems(arguments: argparse.Namespace) -> list[str]:
    known = verdict.cases(arguments.checkout / "conformance" / "cases")
    patterns = arguments.only or ["*"]
    names = [
        name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    found = []
    if "unconfined" in arguments.drivers:
        found = verdict.of_list(verdict.load(arguments.user), known)
        found += _unconfined(names, arguments)
    if "bubblewrap" in arguments.drivers:
        _report("bubblewrap", arguments.only, arguments)
    return found


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    try:
        found = _problems(arguments)
    except (machine.GuestFailed, kernels.NoKernel, NoImage) as error:
        print(f"conformance.py: {error}", file=sys.stderr)
        return machine.BROKEN
    for problem in found:
        print(f"not ok {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
