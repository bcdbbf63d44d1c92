"""What is aimed at (docs/performance.md), held against the figures of one run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from devtool.figures import FLOOR, PEER, Figure, Ratio, find

MOST_OVER_FLOOR_US = 150.0
MOST_OVER_FLOOR = 0.12
KIB_A_MIB = 1024.0

Figures = Sequence[Figure]
# The value, with an interval of 95 % where there is one; None where it was not measured.
Measured = Callable[[Figures], Ratio | None]


@dataclass(frozen=True)
class Target:
    what: str
    unit: str
    limit: float
    measured: Measured
    at_least: bool = False  # Else at most.


def certain(value: float) -> Ratio:
    return Ratio(value, value, value)


def share_of_allowance(gap: int) -> Measured:
    """exec, in units of what it may take: V and the larger of 0.12 V and 150 us."""

    def measured(figures: Figures) -> Ratio | None:
        floor = find(figures, "latency", FLOOR, gap)
        ran = find(figures, "latency", "exec", gap)
        if floor is None or ran is None or FLOOR not in ran.ratios:
            return None
        allowed = 1 + max(MOST_OVER_FLOOR, MOST_OVER_FLOOR_US / floor.median)
        ratio = ran.ratios[FLOOR]
        return Ratio(ratio.value / allowed, ratio.low / allowed, ratio.high / allowed)

    return measured


def ratio(measure: str, name: str, base: str, at: float = 0) -> Measured:
    def measured(figures: Figures) -> Ratio | None:
        found = find(figures, measure, name, at)
        return found.ratios.get(base) if found else None

    return measured


def median(measure: str, name: str, at: float = 0, divided_by: float = 1) -> Measured:
    def measured(figures: Figures) -> Ratio | None:
        found = find(figures, measure, name, at)
        return certain(found.median / divided_by) if found else None

    return measured


def one_to_another(measure: str, name: str, other: str, at: float) -> Measured:
    def measured(figures: Figures) -> Ratio | None:
        one, base = find(figures, measure, name, at), find(figures, measure, other, at)
        return certain(one.median / base.median) if one and base and base.median else None

    return measured


def growth_of_exec(count: int) -> Measured:
    """exec with so many live sandboxes to exec with one, each as a multiple of the floor beside it."""

    def measured(figures: Figures) -> Ratio | None:
        one, many = (
            find(figures, "growth", "exec", at, "live sandboxes") for at in (1, count)
        )
        if one is None or many is None:
            return None
        first, last = one.ratios[FLOOR], many.ratios[FLOOR]
        return Ratio(last.value / first.value, last.low / first.high, last.high / first.low)

    return measured


def time_to_create(count: int) -> Measured:
    """Seconds for so many, one after another, all of which stay alive."""

    def measured(figures: Figures) -> Ratio | None:
        name = "create, one after another"
        each = {one.at: one.median for one in figures if one.name == name and one.at <= count}
        if count not in each:
            return None
        us, made = 0.0, 0.0
        for at in sorted(each):  # A figure is the mean of those that were missing up to its count.
            us += each[at] * (at - made)
            made = at
        return certain(us / 1e6)

    return measured


def sandbox_memory(figures: Figures) -> Ratio | None:
    """Of the largest number of live sandboxes for which the kernel's part is known."""
    counts = [one.at for one in figures if one.name == "each sandbox, kernel"]
    if not counts:
        return None
    parts = ("each sandbox, PSS", "each sandbox, page tables", "each sandbox, kernel")
    found = [find(figures, "memory", part, max(counts), "live sandboxes") for part in parts]
    return certain(sum(one.median for one in found if one) / KIB_A_MIB) if all(found) else None


def engine_memory(figures: Figures) -> Ratio | None:
    parts = ("engine, PSS", "engine, page tables")
    found = [find(figures, "memory", part, 1000, "live sandboxes") for part in parts]
    return certain(sum(one.median for one in found if one) / KIB_A_MIB) if all(found) else None


ONE_SHOT = "create+exec+destroy"

# Of the reference implementation, in TypeScript, as measured on another machine.
REFERENCE_EXEC_MS = 223
REFERENCE_CREATE_MS = 19

TARGETS: tuple[Target, ...] = (
    *(
        Target(f"`exec` with {gap} ms idle, of V + max(0.12 V, 150 us)", "x", 1, share_of_allowance(gap))
        for gap in (0, 50, 1000)
    ),
    Target("`exec, every limit` to `exec`", "x", 1.1, ratio("latency", "exec, every limit", "exec")),
    Target(f"`{ONE_SHOT}` to B", "x", 0.4, ratio("latency", ONE_SHOT, PEER)),
    Target(f"`{ONE_SHOT}` after 50 ms idle, with a spare network namespace, to B", "x", 0.3, ratio("latency", ONE_SHOT, PEER, 50)),
    Target("`palmshed run` to B", "x", 0.5, ratio("latency", "palmshed run", PEER)),
    Target("`create`", "ms", 1, median("latency", "create", divided_by=1000)),
    Target("`engine+first create`", "ms", 15, median("latency", "engine+first create", divided_by=1000)),
    Target("`destroy`", "ms", 1, median("latency", "destroy", divided_by=1000)),
    Target("workload to the same without a sandbox", "x", 1.03, ratio("latency", "workload", "workload, no sandbox")),
    Target(
        f"`{ONE_SHOT}` a second to B's, 2 workers", "x", 3,
        one_to_another("throughput", ONE_SHOT, PEER, 2), at_least=True,
    ),
    Target("`exec` with 1,000 live sandboxes to one", "x", 1.05, growth_of_exec(1000)),
    Target("1,000 sandboxes created", "s", 1.5, time_to_create(1000)),
    Target("an idle sandbox", "MiB", 0.6, sandbox_memory),
    Target("the engine with 1,000 live sandboxes", "MiB", 12, engine_memory),
    Target(
        "captured output to a bare pipe, 64 KiB writes", "x", 0.9,
        ratio("output", "captured, 1 MiB kept", "a bare pipe", 65536), at_least=True,
    ),
    Target(
        "captured output, all kept, 64 KiB writes", "GiB/s", 1.5,
        median("output", "captured, all kept", 65536, divided_by=1024), at_least=True,
    ),
    Target("`exec`, a sixtieth of the reference's", "ms", REFERENCE_EXEC_MS / 60, median("latency", "exec", divided_by=1000)),
    Target(
        "`create`, a fifteenth of the reference's", "ms", REFERENCE_CREATE_MS / 15,
        median("latency", "create", divided_by=1000),
    ),
)


def verdict(target: Target, measured: Ratio | None) -> str:
    """Missed, or met, only where the whole interval says so."""
    if measured is None:
        return "not measured"
    worst, best = measured.high, measured.low
    if target.at_least:
        worst, best = -measured.low, -measured.high
    limit = -target.limit if target.at_least else target.limit
    if worst <= limit:
        return "met"
    return "missed" if best > limit else "within noise"
