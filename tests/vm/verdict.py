"""Whether the kit saw through a driver that isolates nothing."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).resolve().parent / "unconfined_may_pass.toml"


@dataclass(frozen=True)
class Expected:
    works: frozenset[str]  # What any way to run a program gives.
    denied_anyway: frozenset[str]  # By the guest itself, to whoever runs the kit in it.
    ends_the_kit: frozenset[str]


def load(user: str, path: Path = LIST) -> Expected:
    document = tomllib.loads(path.read_text(encoding="utf-8"))

    def names(kind: str) -> frozenset[str]:
        entries = (entry for entry in document[kind] if user in entry.get("as", [user]))
        return frozenset(case for entry in entries for case in entry["cases"])

    return Expected(names("works"), names("denied_anyway"), names("ends_the_kit"))


def cases(directory: Path) -> dict[str, Mapping[str, Any]]:
    """Those of the kit, by name."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.toml")))
    return {case["id"]: case for text in texts for case in tomllib.loads(text)["case"]}


def denies(case: Mapping[str, Any]) -> bool:
    """Whether a program tries what must be denied, or a listener looks whether anybody came who must not."""
    results = (line.get("result") for step in case["step"] for line in _probe_lines(step))
    if any(result == "denied" for result in results):
        return True
    looks = [case.get("after", {}), *(step for step in case["step"] if step.get("op") == "observe")]
    return any(0 in look.get("hits", {}).values() for look in looks)


def _probe_lines(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    lines = step.get("expect", {}).get("probe", [])
    yield from lines if isinstance(lines, list) else [lines]


def of_list(expected: Expected, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is wrong with the list itself."""
    listed = expected.works | expected.denied_anyway | expected.ends_the_kit
    found = [f"{case} is on the list, and no case" for case in sorted(listed - {*known})]
    denied = [case for case in sorted(expected.works) if case in known and denies(known[case])]
    return found + [f"{case} is listed as what works, and must be denied" for case in denied]


def of_report(expected: Expected, report: Mapping[str, Any]) -> list[str]:
    """One line for each case that is not as it must be."""
    found, may_pass = [], expected.works | expected.denied_anyway
    for case in report["cases"]:
        name = f"{case['id']} [{', '.join(case['rules'])}]"
        if case["status"] == "passed" and case["id"] not in may_pass:
            found.append(f"{name} passes with no sandbox around it")
        elif case["status"] not in ("passed", "failed", "skipped"):
            found.append(f"{name} was not decided: {_why(case)}")
    return found


def _why(case: Mapping[str, Any]) -> str:
    first = next(iter(case["failures"]), None)
    return "{where}: {what}: {observed}".format(**first) if first else str(case["status"])
