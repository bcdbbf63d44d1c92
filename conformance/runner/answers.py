"""Answers of a driver as expectations see them, and what is wrong with them."""

from collections.abc import Mapping
from typing import Any

from runner import archives
from runner.driver import decode
from runner.matching import compare, show
from runner.model import Document, Failure


def plain(op: str, ok: Document) -> Document:
    """The answer as expectations see it: documents unwrapped, output as bytes."""
    if op == "wait":
        result = dict(ok["result"])
        for stream in ("stdout", "stderr"):
            text = result[stream]
            encoded = result.get(f"{stream}Encoding") == "base64"
            result[stream] = decode(text) if encoded else text.encode("utf-8", "surrogatepass")
        return result
    if op in ("stream", "read"):
        return {**ok, "bytes": decode(ok["bytes"])}
    if op == "archive-down":
        data = decode(ok["bytes"])
        return {**ok, "bytes": data, "tree": archives.tree(data)}
    if op == "list":
        return {**ok, "names": [entry.get("name") for entry in ok["entries"]]}
    return dict(ok.get("metadata") or ok.get("stat") or ok)


def failures_of(where: str, expected: Mapping[str, Any], seen: Mapping[str, Any]) -> list[Failure]:
    found = [Failure(where, m.field, m.expected, m.observed) for m in compare(expected, seen)]
    if found and seen.get("stderr") and not any(failure.what == "stderr" for failure in found):
        first = found[0]
        said = f"{first.observed}; it said {show(seen['stderr'])}"
        found[0] = Failure(where, first.what, first.expected, said)
    return found


def brief(seen: Document) -> str:
    keys = ("status", "exitCode", "stdout", "stderr", "execution", "sandbox")
    return ", ".join(f"{key} {show(seen[key])}" for key in keys if key in seen) or "done"
