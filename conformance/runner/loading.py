"""Reads cases, rules and profiles. What does not keep to its schema is a KitError that says where."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner import schemas
from runner.model import Case, KitError, Profile, Rule, Skip


def _read(path: Path, schema: str, checked: bool = False) -> dict[str, Any]:
    """`checked`: somebody has held it to its schema before."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise KitError(f"{path}: {error}") from error
    wrong = [] if checked else schemas.problems(f"{schemas.KIT}{schema}.schema.json", document)
    if wrong:
        raise KitError("\n".join(f"{path}: {_named(problem, document)}" for problem in wrong))
    return document


def _named(problem: str, document: dict[str, Any]) -> str:
    """case[12] is hard to find in a file; its id is not."""
    for kind in ("case", "rule"):
        if problem.startswith(f"{kind}["):
            index = int(problem.removeprefix(f"{kind}[").split("]")[0])
            return f"{document[kind][index].get('id', '?')}: {problem}"
    return problem


def _all(directory: Path, kind: str, checked: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(directory.glob("*.toml")):
        for item in _read(path, kind, checked)[kind]:
            yield path.name, item


def _case(file: str, item: dict[str, Any]) -> Case:
    return Case(
        id=item["id"],
        title=item["title"],
        rules=tuple(item["rules"]),
        file=file,
        steps=tuple(item["step"]),
        faults=tuple(item.get("faults", ())),
        profiles=tuple(item.get("profiles", ())),
        needs=frozenset(item.get("needs", ())),
        timeout_s=item.get("timeout_s", 20),
        alone=item.get("alone", False),
        when=item.get("when", {}),
        without_control=item.get("without_control", ""),
        host=item.get("host", {}),
        controls=tuple(item.get("control", ())),
        after=item.get("after", {}),
    )


def load_cases(directory: Path, checked: bool = False) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for file, item in _all(directory, "case", checked):
        case = _case(file, item)
        if case.id in cases:
            raise KitError(f"{file}: {case.id} stands in {cases[case.id].file} too")
        cases[case.id] = case
    if not cases:
        raise KitError(f"{directory}: no cases")
    return cases


def load_rules(directory: Path, checked: bool = False) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for file, item in _all(directory, "rule", checked):
        rule = Rule(**{**item, "cases": tuple(item["cases"])}, file=file)
        if rule.id in rules:
            raise KitError(f"{file}: {rule.id} stands in {rules[rule.id].file} too")
        rules[rule.id] = rule
    if not rules:
        raise KitError(f"{directory}: no rules")
    return rules


def load_profile(directory: Path, name: str) -> Profile:
    path = directory / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in directory.glob("*.toml")))
        raise KitError(f"there is no profile {name!r}; there are {known}")
    item = _read(path, "profile")
    if item["name"] != name:
        raise KitError(f"{path}: the name is {item['name']!r}, not that of the file")
    skips = tuple(Skip(**skip) for skip in item.get("skip", ()))
    own = Profile(
        name, item["title"], (name,), item.get("host", {}), item.get("capabilities", {}), skips
    )
    return _extended(own, load_profile(directory, item["extends"])) if "extends" in item else own


def _extended(own: Profile, base: Profile) -> Profile:
    return Profile(
        name=own.name,
        title=own.title,
        lineage=own.lineage + base.lineage,
        host={**base.host, **own.host},
        capabilities={**base.capabilities, **own.capabilities},
        skips=base.skips + own.skips,
    )
