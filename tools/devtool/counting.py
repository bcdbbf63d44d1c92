"""Reads from what a suite left behind how many of its tests passed, failed and were skipped.

A suite that executed nothing has failed, and so has one that ended badly without naming a failure.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)  # Names of what failed or was skipped.


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
    failed = re.findall(r"^not ok (.*)$", outcome.log, re.MULTILINE)
    passed = re.findall(r"^ok ", outcome.log, re.MULTILINE)
    return Count(len(passed), len(failed), notes=[f"failed: {name}" for name in failed])


def by_ctest(outcome: Outcome) -> Count:
    """CTest's JUnit file. Only a test that itself said so counts as skipped."""
    if not outcome.junit.is_file():
        return Count()
    passed = failed = skipped = 0
    notes = []
    for case in ElementTree.parse(outcome.junit).getroot().iter("testcase"):
        reason = case.find("skipped")
        if case.get("status") == "run":
            passed += 1
        elif reason is not None and "SKIP_" in (reason.get("message") or ""):
            skipped += 1
            notes.append(f"skipped: {case.get('name')}")
        else:
            failed += 1
            notes.append(f"failed: {case.get('name')}")
    return Count(passed, failed, skipped, notes)


def verdict(counter: Counter, outcome: Outcome) -> Count:
    count = counter(outcome)
    if count.failed > 0:
        return count
    if outcome.status != 0:
        note = f"ended with status {outcome.status}"
        return Count(count.passed, 1, count.skipped, [*count.notes, note])
    if count.passed == 0:
        return Count(0, 1, count.skipped, [*count.notes, "executed nothing"])
    return count
