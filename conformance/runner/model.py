"""What the kit is made of, as plain values: cases, rules, profiles, and what became of a case."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

Step = Mapping[str, Any]
Document = dict[str, Any]

# What every driver can do; all other operations are features that it may lack.
BASIC_OPERATIONS = frozenset({"create", "exec", "wait", "destroy", "capabilities"})
RUNNER_OPERATIONS = frozenset({"observe", "kill-driver", "stop-driver", "start-driver"})


class KitError(Exception):
    """The kit itself is wrong: a case, a rule, a profile, or the machine that it runs on."""


@dataclass(frozen=True)
class Case:
    id: str
    title: str
    rules: tuple[str, ...]
    file: str
    steps: tuple[Step, ...]
    faults: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()  # Empty: required everywhere.
    needs: frozenset[str] = frozenset()
    timeout_s: int = 20
    alone: bool = False
    when: Mapping[str, Any] = field(default_factory=dict)  # Capabilities by dotted path.
    without_control: str = ""
    host: Mapping[str, Any] = field(default_factory=dict)
    controls: tuple[Step, ...] = ()
    after: Mapping[str, Any] = field(default_factory=dict)

    def all_steps(self) -> tuple[Step, ...]:
        return self.controls + self.steps

    def features(self) -> frozenset[str]:
        """Everything that a driver must be able to do for this case."""
        used = {step["op"] for step in self.all_steps() if "op" in step and not on_host(step)}
        options: set[str] = set()
        for step in self.all_steps():
            if not on_host(step):
                kind = "create" if step.get("op") == "create" else "exec"
                options |= {f"{kind}.{name}" for name in step.get("options", {})}
                used |= {"write"} if "probe" in step else set()
        return self.needs | options | (used - BASIC_OPERATIONS - RUNNER_OPERATIONS)


def on_host(step: Step) -> bool:
    return step.get("on") == "host"


@dataclass(frozen=True)
class Rule:
    id: str
    level: str
    text: str
    cases: tuple[str, ...]
    since: str
    file: str


@dataclass(frozen=True)
class Skip:
    """Permission not to run some cases."""

    reason: str
    lacks: str = ""
    cases: str = ""


@dataclass(frozen=True)
class Profile:
    name: str
    title: str
    lineage: tuple[str, ...]  # Its own name, then those that it extends.
    host: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    skips: tuple[Skip, ...]


@dataclass(frozen=True)
class Failure:
    """One thing that was not as it must be."""

    where: str
    what: str
    expected: str
    observed: str
    of_kit: bool = False  # The kit is at fault, not the implementation.

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: expected {self.expected}, observed {self.observed}"


@dataclass(frozen=True)
class Seen:
    """One step that was carried out, whatever came of it."""

    where: str
    asked: str
    expected: str
    observed: str


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # The kit is at fault; no verdict on the implementation.
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Outcome:
    case: str
    status: Status
    failures: tuple[Failure, ...] = ()
    reason: str = ""  # Of a skip.
    seconds: float = 0.0
    stderr: str = ""  # The end of what the driver said.
    sandboxes: tuple[str, ...] = ()  # Ids of those that the case made.
    seen: tuple[Seen, ...] = ()

    def as_document(self) -> Document:
        return asdict(self)

    @staticmethod
    def from_document(document: Document) -> "Outcome":
        failures = tuple(Failure(**failure) for failure in document["failures"])
        read = {
            "failures": failures,
            "status": Status(document["status"]),
            "sandboxes": tuple(document["sandboxes"]),
            "seen": tuple(Seen(**step) for step in document["seen"]),
        }
        return Outcome(**{**document, **read})


# What stands for the XDG_RUNTIME_DIR of a run, where it is not known yet.
RUNTIME = "<run>"


@dataclass(frozen=True)
class Hello:
    """How a driver introduced itself."""

    name: str
    version: str
    spec_version: str
    capabilities: Mapping[str, Any]
    lacks: frozenset[str] = frozenset()
    watch: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    @staticmethod
    def from_answer(ok: Document) -> "Hello":
        return Hello(
            name=ok["name"],
            version=ok["version"],
            spec_version=ok["specVersion"],
            capabilities=ok["capabilities"],
            lacks=frozenset(ok.get("lacks", ())),
            watch=tuple(ok.get("watch", ())),
            keeps=tuple(ok.get("keeps", ())),
        )

    def isolates(self) -> bool:
        """Whether it claims any isolation at all."""
        return (
            self.capabilities.get("osFilesystemIsolation") == "supported"
            or self.capabilities.get("networkIsolation") is True
        )
