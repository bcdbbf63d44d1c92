"""Compares what was observed with what a case expects."""

import base64
import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_SHOWN = 240


@dataclass(frozen=True)
class Mismatch:
    field: str
    expected: str
    observed: str


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def lookup(document: Any, path: str) -> Any:
    """What a dotted path leads to; a number is an index into a list."""
    for part in path.split("."):
        if isinstance(document, Mapping) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            return MISSING
    return document


def show(value: Any) -> str:
    text = repr(value) if isinstance(value, (bytes, _Missing)) else json.dumps(value, default=repr)
    text = text.removeprefix("b") if isinstance(value, bytes) else text
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[: LONGEST_SHOWN // 2]} ... {text[-LONGEST_SHOWN // 2 :]} ({len(value)} in all)"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def equal(expected: Any, observed: Any) -> bool:
    """As JSON has it: true is not 1, and 1 is 1.0. Output is bytes and cases write text."""
    if isinstance(observed, bytes):
        return isinstance(expected, str) and expected.encode() == observed
    if isinstance(expected, bool) or isinstance(observed, bool):
        return expected is observed
    if isinstance(expected, list) and isinstance(observed, list):
        return len(expected) == len(observed) and all(map(equal, expected, observed))
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        same = expected.keys() == observed.keys()
        return same and all(equal(expected[key], observed[key]) for key in expected)
    return bool(expected == observed)


def _number(observed: Any) -> bool:
    return isinstance(observed, (int, float)) and not isinstance(observed, bool)


def _each(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _contains(wanted: Any, observed: Any) -> bool:
    there = observed if isinstance(observed, list) else _text(observed)
    return all(text in there for text in _each(wanted))


def _lacks(unwanted: Any, observed: Any) -> bool:
    there = observed if isinstance(observed, list) else _text(observed)
    return not any(text in there for text in _each(unwanted))


def _json(wanted: Any, observed: Any) -> bool:
    try:
        return _subset(wanted, json.loads(_bytes(observed)))
    except ValueError:
        return False


def _subset(wanted: Any, observed: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(observed, Mapping):
        return all(key in observed and _subset(wanted[key], observed[key]) for key in wanted)
    return equal(wanted, observed)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": equal,
    "matches": lambda wanted, observed: re.search(wanted, _text(observed)) is not None,
    "contains": _contains,
    "lacks": _lacks,
    "at_least": lambda wanted, observed: _number(observed) and observed >= wanted,
    "at_most": lambda wanted, observed: _number(observed) and observed <= wanted,
    "not_less_than": lambda wanted, observed: _not_less(wanted, observed),
    "one_of": lambda wanted, observed: any(equal(one, observed) for one in wanted),
    "sha256": lambda wanted, observed: hashlib.sha256(_bytes(observed)).hexdigest() == wanted,
    "bytes": lambda wanted, observed: len(_bytes(observed)) == wanted,
    "base64": lambda wanted, observed: base64.b64decode(wanted) == _bytes(observed),
    "json": _json,
}


def _holds(key: str, wanted: Any, observed: Any) -> bool:
    if key == "absent":
        return bool((observed is MISSING) == wanted)
    return observed is not MISSING and bool(_TESTS[key](wanted, observed))


def agrees(expected: Any, observed: Any) -> str:
    """Empty where `observed` is what `expected` wants, else the part of it that does not hold."""
    if not isinstance(expected, Mapping):
        holds = observed is not MISSING and equal(expected, observed)
        return "" if holds else show(expected)
    for key, wanted in expected.items():
        if key != "because" and not _holds(key, wanted, observed):
            because = f" ({expected['because']})" if "because" in expected else ""
            return f"{key} {show(wanted)}{because}"
    return ""


def compare(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> list[Mismatch]:
    found = []
    for field, value in expected.items():
        if field == "probe":
            found += compare_probe(value, observed.get("stdout", b""))
            continue
        if field == "tree":
            found += compare_tree(value, observed.get("tree", MISSING))
            continue
        seen = lookup(observed, field)
        wanted = agrees(_related(value, observed), seen)
        if wanted:
            found.append(Mismatch(field, wanted, show(seen)))
    return found


def _related(value: Any, observed: Mapping[str, Any]) -> Any:
    """A relation to another field becomes one to what that field holds."""
    if isinstance(value, Mapping) and "not_less_than" in value:
        return {**value, "not_less_than": lookup(observed, value["not_less_than"])}
    return value


def _not_less(wanted: Any, observed: Any) -> bool:
    texts = isinstance(wanted, str) and isinstance(observed, str)
    numbers = _number(wanted) and _number(observed)
    return bool((texts or numbers) and observed >= wanted)


def parse_probe(output: Any) -> list[dict[str, Any]]:
    """The lines of a probe. Whatever is no such line is kept as one that no attempt names."""
    lines = []
    for line in _bytes(output).splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:
            parsed = None
        attempt = isinstance(parsed, dict) and isinstance(parsed.get("attempt"), str)
        lines.append(parsed if attempt else {"attempt": "", "garbage": _text(line)})
    return lines


def compare_probe(expected: list[Mapping[str, Any]], output: Any) -> list[Mismatch]:
    lines = parse_probe(output)
    garbage = [line["garbage"] for line in lines if "garbage" in line]
    found = [Mismatch("probe", "lines with an attempt", show(line)) for line in garbage[:1]]
    for entry in expected:
        named = [line for line in lines if fnmatch.fnmatchcase(line["attempt"], entry["attempt"])]
        if not named:
            found.append(Mismatch(f"probe {entry['attempt']}", "an attempt", show(_text(output))))
        for line in named:
            found += _compare_line(entry, line)
    return found


def _compare_line(entry: Mapping[str, Any], line: Mapping[str, Any]) -> list[Mismatch]:
    found = []
    for key, value in entry.items():
        if key == "attempt":
            continue
        seen = lookup(line, key)
        wanted = agrees({"one_of": value} if isinstance(value, list) else value, seen)
        if wanted:
            found.append(Mismatch(f"probe {line['attempt']} {key}", wanted, show(line)))
    return found


def entry_name(entry: Mapping[str, Any]) -> str:
    """The name that a case gives an entry of an archive, as Python has names of any bytes."""
    name = entry["name"]
    return _text(base64.b64decode(name["base64"])) if isinstance(name, Mapping) else str(name)


def compare_tree(expected: list[Mapping[str, Any]], observed: Any) -> list[Mismatch]:
    """Exactly these entries of an archive, in any order, each with at least what is said of it."""
    if not isinstance(observed, list):
        return [Mismatch("tree", "an archive", show(observed))]
    wanted = {entry_name(entry): entry for entry in expected}
    found = []
    for name in sorted(wanted.keys() | {entry["name"] for entry in observed}):
        there = [entry for entry in observed if entry["name"] == name]
        if len(there) != (name in wanted):
            number = "one such entry" if name in wanted else "no such entry"
            found.append(Mismatch(f"tree {show(name)}", number, show(there)))
        elif there:
            found += _compare_entry(wanted[name], there[0])
    return found


def _compare_entry(wanted: Mapping[str, Any], entry: Mapping[str, Any]) -> list[Mismatch]:
    found = []
    for key, value in wanted.items():
        seen = lookup(entry, key)
        disagrees = "" if key == "name" else agrees(value, seen)
        if disagrees:
            found.append(Mismatch(f"tree {show(entry['name'])} {key}", disagrees, show(seen)))
    return found
