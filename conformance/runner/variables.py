"""${...} in the texts of a case. Names outside our own spaces are left to the shell."""

import re
from collections.abc import Mapping
from typing import Any

from runner.model import KitError

NULL = "${null}"
_VARIABLE = re.compile(r"\$\{((?:host|probe|saved|case)\.[A-Za-z0-9_.-]+|fill\..\.[0-9]+|index)\}")


def fill(value: Any, values: Mapping[str, str]) -> Any:
    """`value` with every variable in it replaced, at any depth, in keys too."""
    if value == NULL:  # TOML has no other way to write it.
        return None
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _lookup(match[1], values), value)
    if isinstance(value, Mapping):
        return {fill(key, values): fill(inner, values) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [entry for inner in value for entry in _entries(fill(inner, values))]
    return value


def _entries(value: Any) -> list[Any]:
    """{ repeat = "a", count = 3 } in a list is so many entries."""
    if isinstance(value, Mapping) and value.keys() == {"repeat", "count"}:
        return [value["repeat"]] * value["count"]
    return [value]


def _lookup(name: str, values: Mapping[str, str]) -> str:
    if name.startswith("fill."):
        return name[5] * int(name[7:])
    if name not in values:
        raise KitError(f"there is no variable ${{{name}}}")
    return values[name]


def mentioned(value: Any) -> set[str]:
    """The names of all variables in `value`."""
    if isinstance(value, str):
        return set(_VARIABLE.findall(value))
    if isinstance(value, Mapping):
        return mentioned(list(value.keys())) | mentioned(list(value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*map(mentioned, value)) if value else set()
    return set()
