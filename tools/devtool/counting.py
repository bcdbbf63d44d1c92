"""Reads from what a suite left behind how many of its tests passed, failed and were skipped.

A suite that executed nothing has failed, and so has one that ended badly without naming a failure.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path


Case = ElementTree.Element  # A test case of a JUnit file.


@dataclass(frozen=True)
class Failure:
    name: str
    said: str = ""  # What the test printed, where that is known of one alone.


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: list[str] = field(default_factory=list)  # Names of what was skipped.
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    status: int  # Exit status of the last command that ran.
    log: str
    junit: Path  # Where CTest was told to write.


Counter = Callable[[Outcome], Count]


def one_check(outcome: Outcome) -> Count:
    """The commands together are one check."""
    return Count(passed=1) if outcome.status == 0 else Count(failed=1)


def by_unittest(outcome: Outcome) -> Count:
    """The summary of Python's unittest."""
    ran = sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in ", outcome.log, re.MULTILINE))
    verdicts = " ".join(re.findall(r"^(?:OK|FAILED) \((.*)\)$", outcome.log, re.MULTILINE))
    counts = {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", verdicts)}
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0)
    return Count(max(ran - failed - skipped, 0), failed, skipped)


def by_lines(outcome: Outcome) -> Count:
    """Lines that start with "ok " or "not ok "."""
    failures = [Failure(name) for name in re.findall(r"^not ok (.*)$", outcome.log, re.MULTILINE)]
    passed = re.findall(r"^ok ", outcome.log, re.MULTILINE)
    return Count(len(passed), len(failures), failures=failures)


def by_ctest(outcome: Outcome) -> Count:
    """CTest's JUnit file. Only a test that itself said so counts as skipped."""

    def skipped(case: Case) -> bool:
        reason = case.find("skipped")
        return reason is not None and "SKIP_" in (reason.get("message") or "")

    return by_cases(outcome, lambda case: case.get("status") == "run", skipped)


def by_junit(outcome: Outcome) -> Count:
    """Any other JUnit file, such as the conformance kit's."""

    def skipped(case: Case) -> bool:
        return case.find("skipped") is not None and not failed(case)

    def failed(case: Case) -> bool:
        return case.find("failure") is not None or case.find("error") is not None

    return by_cases(outcome, lambda case: not failed(case) and not skipped(case), skipped)


def by_cases(
    outcome: Outcome, passed: Callable[[Case], bool], skipped: Callable[[Case], bool]
) -> Count:
    """What neither passed nor was skipped has failed."""
    if not outcome.junit.is_file():
        return Count()
    good = 0
    left_out: list[str] = []
    failures: list[Failure] = []
    for case in ElementTree.parse(outcome.junit).getroot().iter("testcase"):
        name = case.get("name") or "?"
        if passed(case):
            good += 1
        elif skipped(case):
            left_out.append(name)
        else:
            failures.append(Failure(name, said_by(case)))
    return Count(good, len(failures), len(left_out), left_out, failures)


def said_by(case: Case) -> str:
    texts = [part.text or part.get("message") or "" for part in case]
    return "\n".join(text.strip() for text in texts if text.strip())


def verdict(counter: Counter, outcome: Outcome) -> Count:
    count = counter(outcome)
    if count.failed > 0:
        return count
    if outcome.status != 0:
        return replace(count, failed=1, failures=[Failure(f"ended with status {outcome.status}")])
    if count.passed == 0:
        return replace(count, failed=1, failures=[Failure("executed nothing")])
    return count
