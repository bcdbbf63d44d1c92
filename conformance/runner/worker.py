"""A process of the runner that runs cases one after another.

It is a process of its own so that it sees everything which a driver leaves running (orphans become its
children), and so that the pool can end it whatever a driver does. First line of standard input: the setting.
Every further line: a case. Every line of standard output: an outcome.
"""

import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runner import loading
from runner.case_run import Setting, run_case
from runner.model import Case, Document, Failure, Hello, Outcome, Status
from runner.prepared import remove_tree
from runner.subreaper import adopt_orphans, end_with_parent


def as_document(setting: Setting, cases: Path) -> Document:
    hello = asdict(setting.hello)
    hello["lacks"] = sorted(setting.hello.lacks)
    probes = str(setting.probes) if setting.probes else None
    document = {"command": setting.command, "probes": probes, "throwaway": setting.throwaway}
    document["patience"] = setting.patience
    runtime = str(setting.runtime) if setting.runtime else None
    places = {"cases": str(cases), "place": str(setting.place), "runtime": runtime}
    return {**document, **places, "hello": hello}


def _setting(document: Document) -> Setting:
    hello = {**document["hello"], "lacks": frozenset(document["hello"]["lacks"])}
    probes = Path(document["probes"]) if document["probes"] else None
    command = tuple(document["command"])
    place = Path(document["place"])
    runtime = Path(document["runtime"]) if document["runtime"] else None
    throwaway, patience = document["throwaway"], document["patience"]
    return Setting(command, Hello(**hello), probes, throwaway, place, runtime, patience)


def _outcome(case: Case, setting: Setting) -> Outcome:
    try:
        return run_case(case, setting)
    except Exception:  # A mistake of the kit costs this case, not the run.
        failure = Failure("the kit", "the runner", "an outcome", traceback.format_exc(), True)
        return Outcome(case.id, Status.ERROR, (failure,))


def _leave(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def main() -> int:
    end_with_parent()
    adopt_orphans()
    signal.signal(signal.SIGTERM, _leave)
    # Not SIG_IGN, which the driver and all that it starts would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    parent = os.getppid()
    document = json.loads(sys.stdin.readline())
    setting = _setting(document)
    cases = loading.load_cases(Path(document["cases"]), checked=True)  # By the pool's process.
    try:
        for line in sys.stdin:
            outcome = _outcome(cases[json.loads(line)["case"]], setting)
            print(json.dumps(outcome.as_document()), flush=True)
    finally:
        if os.getppid() != parent:  # Nobody else is left to do it; the last worker succeeds.
            with suppress(OSError):
                if {*setting.place.iterdir()} <= {setting.runtime}:
                    remove_tree(setting.place)
    return 0
