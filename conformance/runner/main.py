"""The command line: run, prove, list, lint."""

import argparse
import datetime
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner import (
    admission,
    junit,
    laboratory,
    lint,
    loading,
    machine,
    markdown,
    report,
    selection,
    worker,
)
from runner.case_run import Setting
from runner.model import Case, KitError, Outcome, Profile, Rule, Status
from runner.paths import CASES, ENTRY, PROFILES, ROOT, RULES
from runner.pool import Pool
from runner.progress import Progress, command_line
from runner.subreaper import adopt_orphans

PASSED, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
PROBES_VARIABLE = "PALMSHED_CONFORMANCE_PROBES"


def _times(text: str) -> int:
    """How many times; at least once."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance", description="The conformance kit of the specification."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="run|prove|list|lint")
    run = verbs.add_parser("run", help="hold an implementation to the rules")
    prove = verbs.add_parser("prove", help="run one case alone and tell all that is seen")
    prove.add_argument("only", nargs=1, metavar="CASE", help="a case, or all those of a rule")
    prove.set_defaults(jobs=1, smoke=False)
    for verb in (run, prove):
        verb.add_argument(
            "--driver",
            required=True,
            metavar="CMD",
            help="the driver with its arguments, as for a shell",
        )
        verb.add_argument(
            "--profile", metavar="P", help="what the host must give; root or user where absent"
        )
        verb.add_argument(
            "--probes",
            type=Path,
            metavar="DIR",
            help=f"built probes; else ${PROBES_VARIABLE}, else below build/",
        )
        verb.add_argument(
            "--patience",
            type=_times,
            default=1,
            metavar="N",
            help="wait N times as long for answers, as on an emulated processor; "
            "no bound on what is seen moves",
        )
    # Most cases wait most of the time.
    usual = min(4, (os.cpu_count() or 1) + 1)
    run.add_argument("--jobs", type=int, default=usual, metavar="N", help="cases at once")
    # Somebody has held cases and rules to their schemas before: on an emulated processor that takes
    # longer than many a case.
    run.add_argument("--checked", action="store_true", help=argparse.SUPPRESS)
    for form in ("junit", "json", "markdown"):
        run.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write the report as {form}")
    for verb in (run, verbs.add_parser("list", help="show the cases")):
        verb.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="GLOB",
            help="cases or rules; may be repeated",
        )
        verb.add_argument("--smoke", action="store_true", help="the first case of each rule")
    verbs.add_parser("lint", help="check cases and rules against each other")
    verbs.add_parser("worker")
    for verb in verbs.choices.values():
        verb.add_argument("--cases", type=Path, default=CASES, help=argparse.SUPPRESS)
        verb.add_argument("--rules", type=Path, default=RULES, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def _kit(arguments: argparse.Namespace) -> tuple[dict[str, Case], dict[str, Rule]]:
    checked = getattr(arguments, "checked", False)
    cases = loading.load_cases(arguments.cases, checked)
    rules = loading.load_rules(arguments.rules, checked)
    if not checked:
        _lint_all(arguments, cases, rules)
    return cases, rules


def _lint_all(
    arguments: argparse.Namespace, cases: dict[str, Case], rules: dict[str, Rule]
) -> None:
    known = [path.stem for path in sorted(PROFILES.glob("*.toml"))]
    profiles = [loading.load_profile(PROFILES, name) for name in known]
    found = lint.problems(cases, rules, set(known))
    patterns = [skip.cases for profile in profiles for skip in profile.skips if skip.cases]
    if arguments.cases == CASES:
        found += [
            f"a profile skips {pattern}, which is no case"
            for pattern in lint.unknown_skips(cases, patterns)
        ]
    if found:
        raise KitError("\n".join(found))


def _probes(given: Path | None) -> Path | None:
    if given or PROBES_VARIABLE in os.environ:
        return (given or Path(os.environ[PROBES_VARIABLE])).resolve()
    built = [path for path in ROOT.glob("build/*/conformance/probes") if path.is_dir()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def _again(arguments: argparse.Namespace, profile: Profile) -> str:
    entry = os.path.relpath(ENTRY)
    words = [
        entry if "/" in entry else f"./{entry}",
        "run",
        "--driver",
        arguments.driver,
        "--profile",
        profile.name,
    ]
    if arguments.probes:
        words += ["--probes", str(arguments.probes)]
    if arguments.patience > 1:
        words += ["--patience", str(arguments.patience)]
    if (arguments.cases, arguments.rules) != (CASES, RULES):
        words += ["--cases", str(arguments.cases), "--rules", str(arguments.rules)]
    return command_line([*words, "--only"])


@dataclass(frozen=True)
class _Begun:
    """A run whose driver has been let in."""

    cases: dict[str, Case]
    rules: dict[str, Rule]
    profile: Profile
    facts: Mapping[str, str]
    chosen: list[Case]
    selected: selection.Selection
    setting: Setting


def _begin(arguments: argparse.Namespace) -> _Begun:
    cases, rules = _kit(arguments)
    throwaway, facts = machine.is_throwaway(), machine.facts()
    profile = loading.load_profile(
        PROFILES, arguments.profile or ("root" if os.geteuid() == 0 else "user")
    )
    if wrong := machine.mismatches(profile, facts):
        raise KitError("\n".join(wrong))
    chosen = selection.choose(cases, rules, arguments.only, arguments.smoke)
    command = tuple(shlex.split(arguments.driver))
    adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As ^C.
    hello = admission.preflight(command)
    admission.admit(hello, throwaway)
    selected = selection.select(chosen, profile, hello)
    setting = Setting(
        command, hello, _probes(arguments.probes), throwaway, patience=arguments.patience
    )
    return _Begun(cases, rules, profile, facts, chosen, selected, setting)


def _run(arguments: argparse.Namespace) -> int:
    begun = _begin(arguments)
    hello, profile, decided = begun.setting.hello, begun.profile, begun.selected.decided
    progress = Progress(begun.cases, len(begun.chosen), _again(arguments, profile))
    print(
        f"{hello.name} {hello.version}, profile {profile.name}: {len(begun.chosen)} cases",
        flush=True,
    )
    started, began = datetime.datetime.now(datetime.UTC), time.monotonic()
    for outcome in decided:
        progress.show(outcome)
    pool = Pool(begun.setting, arguments.cases, max(1, arguments.jobs), progress.show)
    outcomes = {outcome.case: outcome for outcome in decided} | pool.run(begun.selected.to_run)
    progress.end()
    run = report.Run(
        hello=hello,
        command=arguments.driver,
        again=_again(arguments, profile),
        profile=profile,
        machine=begun.facts,
        cases=begun.cases,
        rules=begun.rules,
        outcomes=outcomes,
        problems=admission.capability_problems(profile, hello),
        started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=time.monotonic() - began,
        interrupted=pool.interrupted,
    )
    return _finish(arguments, run)


def _prove(arguments: argparse.Namespace) -> int:
    begun = _begin(arguments)
    pool = Pool(begun.setting, arguments.cases, arguments.jobs, lambda _: None)
    ran = pool.run(begun.selected.to_run)
    outcomes = {outcome.case: outcome for outcome in begun.selected.decided} | ran
    told = [laboratory.tell(begun.cases[name], begun.rules, outcomes[name]) for name in outcomes]
    print("\n\n".join(told))
    if pool.interrupted:
        return INTERRUPTED
    return PASSED if laboratory.all_hold(outcomes.values()) else FAILED


def _finish(arguments: argparse.Namespace, run: report.Run) -> int:
    document = report.as_document(run)
    writers: dict[str, Callable[[], str]] = {
        "junit": lambda: junit.render(document),
        "json": lambda: json.dumps(document, indent=2) + "\n",
        "markdown": lambda: markdown.render(document),
    }
    for form, render in writers.items():
        if path := getattr(arguments, form):
            path.write_text(render(), encoding="utf-8")
    for problem in run.problems:
        print(f"FAIL {problem}")
    _print_skips(run.outcomes.values())
    counts = run.counts()
    failed = counts["failed"] + counts["error"] + len(run.problems)
    cut = f", {counts['interrupted']} interrupted or not begun" if run.interrupted else ""
    print(f"verdict: {run.verdict()} ({run.seconds:.1f} s)")
    print(f"{counts['passed']} passed, {failed} failed, {counts['skipped']} skipped{cut}")
    if run.interrupted:
        return INTERRUPTED
    return FAILED if run.failed() else PASSED


def _print_skips(outcomes: Iterable[Outcome]) -> None:
    reasons: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.status is Status.SKIPPED:
            reasons[outcome.reason] = reasons.get(outcome.reason, 0) + 1
    for reason, number in sorted(reasons.items()):
        print(f"skipped {number}: {reason}")


def _list(arguments: argparse.Namespace) -> int:
    cases, rules = _kit(arguments)
    for case in selection.choose(cases, rules, arguments.only, arguments.smoke):
        print(f"{case.id:<44} {','.join(case.rules):<20} {case.title}")
    return PASSED


def _lint(arguments: argparse.Namespace) -> int:
    cases, rules = _kit(arguments)
    print(
        f"conformance: {len(cases) + len(rules)} checked, 0 problems ({len(cases)} cases, {len(rules)} rules)"
    )
    return PASSED


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    verbs: dict[str, Callable[[argparse.Namespace], int]] = {
        "run": _run,
        "prove": _prove,
        "list": _list,
        "lint": _lint,
        "worker": lambda _: worker.main(),
    }
    try:
        return verbs[arguments.verb](arguments)
    except KitError as error:
        print(error, file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # The reader of a list has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
