"""The outcome of a run as one document, which every format of the report is made from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.model import Case, Document, Hello, Outcome, Profile, Rule, Status

VERSION = "1.0.0"
BAD = (Status.FAILED, Status.ERROR, Status.INTERRUPTED)


@dataclass(frozen=True)
class Run:
    """Everything about a run that has ended."""

    hello: Hello
    command: str
    again: str  # The command that runs one case alone, up to its name.
    profile: Profile
    machine: Mapping[str, str]
    cases: Mapping[str, Case]  # All of the kit.
    rules: Mapping[str, Rule]
    outcomes: Mapping[str, Outcome]  # Of those that were chosen.
    problems: tuple[str, ...]  # Beside the cases: capabilities that the profile misses.
    started_at: str
    seconds: float
    interrupted: bool

    def complete(self) -> bool:
        return not self.interrupted and self.outcomes.keys() == self.cases.keys()

    def failed(self) -> bool:
        return bool(self.problems) or any(o.status in BAD for o in self.outcomes.values())

    def counts(self) -> dict[str, int]:
        counted = Counter(outcome.status for outcome in self.outcomes.values())
        return {status.value: counted[status] for status in Status}

    def verdict(self) -> str:
        if not self.complete():
            return "none: not every case was run"
        if any(outcome.status is Status.ERROR for outcome in self.outcomes.values()):
            return "none: the kit could not decide every case"
        if self.problems or self._broken("MUST"):
            return "does not conform"
        return "conforms, with recommendations not met" if self._broken("SHOULD") else "conforms"

    def _broken(self, level: str) -> bool:
        rules = [rule for rule in self.rules.values() if rule.level.startswith(level)]
        return any(rule_result(rule, self.outcomes) == "failed" for rule in rules)


def rule_result(rule: Rule, outcomes: Mapping[str, Outcome]) -> str:
    """The worst of its cases. One that was skipped beside others that passed is told apart."""
    results = {outcomes[case].status if case in outcomes else None for case in rule.cases}
    for status in (Status.FAILED, Status.ERROR, Status.INTERRUPTED):
        if status in results:
            return status.value
    if results == {Status.PASSED}:
        return "passed"
    if Status.PASSED in results:
        return "passed in part"
    return "skipped" if Status.SKIPPED in results else "not run"


def _case_document(case: Case, outcome: Outcome, again: str) -> Document:
    return {
        "id": case.id,
        "title": case.title,
        "rules": list(case.rules),
        "faults": list(case.faults),
        "file": case.file,
        "status": outcome.status.value,
        "seconds": round(outcome.seconds, 3),
        "reason": outcome.reason,
        "failures": [
            {key: getattr(failure, key) for key in ("where", "what", "expected", "observed")}
            for failure in outcome.failures
        ],
        "stderr": outcome.stderr if outcome.status in BAD else "",
        "command": f"{again} {case.id}",
    }


def _rule_document(rule: Rule, outcomes: Mapping[str, Outcome]) -> Document:
    return {
        "id": rule.id,
        "level": rule.level,
        "text": rule.text,
        "cases": list(rule.cases),
        "result": rule_result(rule, outcomes),
    }


def as_document(run: Run) -> dict[str, Any]:
    hello = run.hello
    return {
        "kit": VERSION,
        "verdict": run.verdict(),
        "complete": run.complete(),
        "startedAt": run.started_at,
        "seconds": round(run.seconds, 1),
        "driver": {
            "name": hello.name,
            "version": hello.version,
            "specVersion": hello.spec_version,
            "command": run.command,
            "capabilities": hello.capabilities,
            "lacks": sorted(hello.lacks),
            "keeps": list(hello.keeps),
        },
        "profile": {"name": run.profile.name, "title": run.profile.title},
        "machine": dict(run.machine),
        "counts": run.counts(),
        "problems": list(run.problems),
        "rules": [_rule_document(rule, run.outcomes) for rule in run.rules.values()],
        "cases": [
            _case_document(run.cases[name], run.outcomes[name], run.again)
            for name in run.cases
            if name in run.outcomes
        ],
    }
