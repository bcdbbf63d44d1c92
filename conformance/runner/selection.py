"""Which cases are run, which are skipped and why, and which fail because the driver cannot do them."""

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from runner.matching import MISSING, agrees, lookup, show
from runner.model import Case, Failure, Hello, KitError, Outcome, Profile, Rule, Status


@dataclass(frozen=True)
class Selection:
    to_run: list[Case]
    decided: list[Outcome]  # Without being run.


def choose(
    cases: dict[str, Case], rules: dict[str, Rule], only: list[str], smoke: bool
) -> list[Case]:
    """The cases that the command line asks for."""
    first = {rule.cases[0] for rule in rules.values()}
    chosen = [case for case in cases.values() if not smoke or case.id in first]
    if only:
        chosen = [case for case in chosen if any(_named(case, pattern) for pattern in only)]
    if not chosen:
        raise KitError("no case has such a name")
    return chosen


def _named(case: Case, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (case.id, *case.rules))


def select(cases: Iterable[Case], profile: Profile, hello: Hello) -> Selection:
    to_run, decided = [], []
    for case in cases:
        outcome = _decide(case, profile, hello)
        if outcome:
            decided.append(outcome)
        else:
            to_run.append(case)
    return Selection(to_run, decided)


def _decide(case: Case, profile: Profile, hello: Hello) -> Outcome | None:
    if case.profiles and not set(case.profiles) & set(profile.lineage):
        reason = f"the profile {profile.name} does not require it"
        return Outcome(case.id, Status.SKIPPED, reason=reason)
    for name, wanted in case.when.items():
        if not _reported(hello, name, wanted):
            reason = f"it applies only where {name} is {show(wanted)}"
            return Outcome(case.id, Status.SKIPPED, reason=reason)
    for skip in profile.skips:
        if not skip.lacks and fnmatch.fnmatchcase(case.id, skip.cases):
            return Outcome(case.id, Status.SKIPPED, reason=skip.reason)
    missing = sorted(case.features() & hello.lacks)
    forbidden = [feature for feature in missing if not _permission(case, profile, feature)]
    if forbidden:
        wanted = f"{', '.join(forbidden)}, which the profile {profile.name} does not excuse"
        failure = Failure("selection", "features", wanted, "the driver lacks it")
        return Outcome(case.id, Status.FAILED, (failure,))
    if missing:
        return Outcome(case.id, Status.SKIPPED, reason=_permission(case, profile, missing[0]))
    return None


def _reported(hello: Hello, name: str, wanted: object) -> bool:
    """A capability that is not named is one that is not there."""
    seen = lookup({"capabilities": hello.capabilities}, name)
    return not agrees(wanted, False if seen is MISSING else seen)


def _permission(case: Case, profile: Profile, feature: str) -> str:
    """The reason that the profile gives, or nothing."""
    for skip in profile.skips:
        if skip.lacks == feature and fnmatch.fnmatchcase(case.id, skip.cases or "*"):
            return skip.reason
    return ""
