"""What schemas cannot say about cases and rules, and that each names the other."""

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from runner import schemas
from runner.model import Case, Rule, Step, on_host
from runner.variables import fill, mentioned

_DENIED = frozenset({"denied", "error"})
_UNCONDITIONAL = frozenset(
    {
        "filesystem",
        "networkIsolation",
        "osFilesystemIsolation",
        "filesystemView",
        "crashKill",
        "streaming",
    }
)
_VARIES = frozenset({"port", "path", "pid", "content"})


def problems(cases: Mapping[str, Case], rules: Mapping[str, Rule], profiles: set[str]) -> list[str]:
    found = [*_links(cases, rules)]
    for case in cases.values():
        checks = (
            _profiles(case, profiles),
            _names(case),
            _variables(case),
            _controls(case),
            _requests(case),
            _crashes(case),
            _conditions(case),
        )
        found += [f"{case.file}: {case.id}: {text}" for check in checks for text in check]
    return found


def _links(cases: Mapping[str, Case], rules: Mapping[str, Rule]) -> Iterator[str]:
    for case in cases.values():
        for name in case.rules:
            if name not in rules:
                yield f"{case.file}: {case.id}: there is no rule {name}"
            elif case.id not in rules[name].cases:
                yield f"{rules[name].file}: {name} does not name the case {case.id}"
    for rule in rules.values():
        for name in rule.cases:
            if name not in cases:
                yield f"{rule.file}: {rule.id}: there is no case {name}"
            elif rule.id not in cases[name].rules:
                yield f"{cases[name].file}: {name} does not name the rule {rule.id}"


def _profiles(case: Case, profiles: set[str]) -> Iterator[str]:
    for name in case.profiles:
        if name not in profiles:
            yield f"there is no profile {name}"


def _prepared(case: Case, *kinds: str) -> set[str]:
    return {item["name"] for kind in kinds for item in case.host.get(kind, ())}


def _names(case: Case) -> Iterator[str]:
    """References to steps, and to what is prepared."""
    started: set[str] = set()
    background: set[str] = set()
    for step in case.all_steps():
        name = step.get("name", "")
        for wanted in step.get("join", ()):
            if wanted not in background:
                yield f"join: no step {wanted} runs in the background"
        if "execution" in step and step["execution"] not in started:
            yield f"no earlier step {step['execution']} starts a program"
        if name and name in started | background:
            yield f"two steps are called {name}"
        started |= _starts(step, name)
        background |= {name} if step.get("background") else set()
    yield from _observed(case)


def _starts(step: Step, name: str) -> set[str]:
    if not ("probe" in step or step.get("op") == "exec"):
        return set()
    count = step.get("copies", step.get("times"))
    return {f"{name}-{index}" for index in range(count)} if count else {name}


def _observed(case: Case) -> Iterator[str]:
    known = {
        "files_unchanged": _prepared(case, "files", "directories", "links"),
        "hits": _prepared(case, "listeners"),
        "alive": _prepared(case, "processes"),
    }
    for look in (case.after, *(step for step in case.all_steps() if step.get("op") == "observe")):
        for key, names in known.items():
            for name in set(look.get(key, ())) - names:
                yield f"{key}: nothing called {name} is prepared"
    for item in case.host.get("descriptors", ()):
        if item["file"] not in _prepared(case, "files", "directories"):
            yield f"descriptors: no file {item['file']} is prepared"


def _variables(case: Case) -> Iterator[str]:
    prepared = _prepared(case, "files", "directories", "links", "listeners", "processes")
    saved = {name for step in case.all_steps() for name in step.get("save", ())}
    for step in case.all_steps():
        used = mentioned({key: value for key, value in step.items() if key != "save"})
        if "index" in used and not ("times" in step or "copies" in step):
            yield "${index} counts nothing in a step without times and copies"
        yield from _unknown(used - {"index"}, prepared, saved)
    yield from _unknown(mentioned([case.after, case.host.get("env", {})]), prepared, saved)


def _unknown(used: set[str], prepared: set[str], saved: set[str]) -> Iterator[str]:
    for name in used:
        if name.startswith("fill."):
            continue
        space, _, rest = name.partition(".")
        base, _, last = rest.rpartition(".")
        known = {
            "host": rest == "dir" or rest in prepared or (base in prepared and last in _VARIES),
            "saved": rest in saved or rest.startswith("sandbox."),
            "case": rest == "marker",
            "probe": True,
        }
        if not known.get(space, False):
            yield f"there is no variable ${{{name}}}"


def _expects_denial(step: Step) -> bool:
    for line in step.get("expect", {}).get("probe", ()):
        wanted = line.get("result")
        values = wanted if isinstance(wanted, list) else [wanted]
        if any(isinstance(value, str) and value in _DENIED for value in values):
            return not on_host(step)
    return False


def _controls(case: Case) -> Iterator[str]:
    if case.controls:
        if case.without_control:
            yield "it has a control and says why there is none"
        return
    if any(_expects_denial(step) for step in case.steps) and not case.without_control:
        yield "a probe is denied, and no control shows it allowed (or without_control says why)"
    looks = (case.after, *(step for step in case.steps if step.get("op") == "observe"))
    for look in looks:
        for name, hits in look.get("hits", {}).items():
            if hits == 0:
                yield f"hits of {name} are to be 0, and no control has reached it"


def _once(step: Step) -> Step:
    """One of many entries that are the same is enough to be checked."""
    args = step.get("args", ())
    if not any(isinstance(entry, Mapping) for entry in args):
        return step
    return {**step, "args": [e.get("repeat", e) if isinstance(e, Mapping) else e for e in args]}


class _Placeholders(dict[str, str]):
    """Some value for every variable."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> str:
        return "/0"  # Paths are what they mostly are.


def _requests(case: Case) -> Iterator[str]:
    """A request that is to be accepted keeps to the schemas, so that a slip is not taken for a fault."""
    for step in fill([_once(step) for step in case.all_steps()], _Placeholders()):
        if "expect_error" in step or on_host(step):
            continue
        if step.get("op") == "create":
            yield from _against("sandbox-options", step.get("options", {}))
        if step.get("op") == "exec" and "probe" not in step:
            form = {key: step[key] for key in ("args", "command") if key in step}
            yield from _against("exec-options", {**step.get("options", {}), **form})


def _against(schema: str, document: Mapping[str, Any]) -> Iterator[str]:
    for problem in schemas.problems(f"{schemas.SPEC}{schema}.schema.json", dict(document)):
        yield f"{schema}: {problem}"


def _conditions(case: Case) -> Iterator[str]:
    for name in case.when:
        if name.removeprefix("capabilities.") in _UNCONDITIONAL:
            yield f"when: no case may depend on {name}, or isolation would be a matter of choice"


def _crashes(case: Case) -> Iterator[str]:
    operations = [step.get("op") for step in case.steps]
    leftovers = not case.after.get("no_leftovers", True)
    if leftovers and not case.alone:
        yield "what may leave things on the host runs alone"
    if leftovers and "kill-driver" not in operations:
        yield "only a case that kills the driver may leave things on the host"
    own = [
        step for step in case.steps if step.get("op") == "kill-driver" and not step.get("beside")
    ]
    if own and not leftovers:
        after = operations[operations.index("kill-driver") :]
        if "start-driver" not in after:
            yield "after kill-driver, start-driver is needed to clean up (or no_leftovers = false)"


def unknown_skips(cases: Mapping[str, Case], patterns: list[str]) -> list[str]:
    """Patterns of a profile that name no case."""
    return [one for one in patterns if not any(fnmatch.fnmatchcase(name, one) for name in cases)]
