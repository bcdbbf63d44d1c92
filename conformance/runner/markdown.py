"""The report for people: what was run where, a matrix of rules, and every failure."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

_MARKS = {"passed": "ok", "failed": "**failed**", "error": "**no verdict**"}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(map(_cell, row))} |" for row in rows), ""]


def _summary(document: dict[str, Any]) -> list[str]:
    driver, profile = document["driver"], document["profile"]
    counts = ", ".join(
        f"{number} {status}" for status, number in document["counts"].items() if number
    )
    rows = [
        ("implementation", f"{driver['name']} {driver['version']}"),
        ("follows", f"specification {driver['specVersion']}"),
        ("kit", document["kit"]),
        ("profile", f"{profile['name']}: {profile['title']}"),
        ("cases", counts),
        ("run", f"{document['startedAt']}, {document['seconds']} s"),
        ("lacks", ", ".join(driver["lacks"]) or "nothing"),
        ("keeps files", ", ".join(driver["keeps"]) or "none"),
        *document["machine"].items(),
    ]
    title = f"# Conformance of {driver['name']}"
    verdict = f"Verdict: **{document['verdict']}**."
    return [title, "", verdict, "", *_table(("", ""), rows)]


def _matrix(document: dict[str, Any]) -> list[str]:
    statuses = {case["id"]: case["status"] for case in document["cases"]}
    rows = []
    for rule in document["rules"]:
        cases = ", ".join(f"{name} ({statuses.get(name, 'not run')})" for name in rule["cases"])
        result = _MARKS.get(rule["result"], rule["result"])
        rows.append((rule["id"], result, f"{rule['level']}: {rule['text']}", cases))
    return ["## Rules", "", *_table(("rule", "result", "text", "cases"), rows)]


def _failures(document: dict[str, Any]) -> list[str]:
    lines = [f"- {problem}" for problem in document["problems"]]
    for case in document["cases"]:
        if case["status"] in ("passed", "skipped"):
            continue
        lines.append(
            f"- **{case['id']}** ({', '.join(case['rules'])}, {case['status']}): {case['title']}."
        )
        for failure in case["failures"]:
            sentence = "{where}: {what}: expected {expected}, observed {observed}".format(**failure)
            lines.append(f"  - {' '.join(sentence.split())}")
        lines.append(f"  - `{case['command']}`")
    return ["## What failed", "", *lines, ""] if lines else []


def _skips(document: dict[str, Any]) -> list[str]:
    reasons: dict[str, list[str]] = defaultdict(list)
    for case in document["cases"]:
        if case["status"] == "skipped":
            reasons[case["reason"]].append(case["id"])
    rows = [(str(len(names)), reason, ", ".join(names)) for reason, names in reasons.items()]
    return ["## What was skipped", "", *_table(("cases", "why", "which"), rows)] if rows else []


def render(document: dict[str, Any]) -> str:
    parts = [*_summary(document), *_failures(document), *_skips(document), *_matrix(document)]
    return "\n".join(parts).rstrip() + "\n"
