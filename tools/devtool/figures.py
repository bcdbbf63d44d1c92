"""What the benchmark programs write, as benchmarks/figure.h has it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLOOR = "vfork+exec"
PEER = "bubblewrap"


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    measure: str
    name: str
    unit: str
    samples: int
    low: float
    median: float
    high: float
    axis: str = ""
    at: float = 0
    ratios: dict[str, Ratio] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Run:
    """One run of all programs."""

    machine: dict[str, Any]
    surroundings: dict[str, str]  # What a program cannot know: date, commit, load.
    peers: list[dict[str, Any]]
    figures: list[Figure]
    missing: dict[str, str]  # Parts that gave nothing, with the reason.


def figure(document: dict[str, Any]) -> Figure:
    ratios = {base: Ratio(**ratio) for base, ratio in document.get("ratios", {}).items()}
    return Figure(**{**document, "ratios": ratios})


def read(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    document["figures"] = [figure(one) for one in document["figures"]]
    return document


def find(
    figures: Iterable[Figure], measure: str, name: str, at: float = 0, axis: str = ""
) -> Figure | None:
    """The first that fits; any axis where none is given."""
    for one in figures:
        if (one.measure, one.name, one.at) == (measure, name, at) and axis in ("", one.axis):
            return one
    return None
