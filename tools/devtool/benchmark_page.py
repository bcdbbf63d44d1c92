"""The page about one run of the benchmarks: Markdown, with charts beside it."""

import re
from collections.abc import Callable, Iterable, Sequence

from devtool import charts
from devtool.figures import FLOOR, Figure, Ratio, Run
from devtool.targets import TARGETS, verdict

# Measure -> heading and what the reader should know.
MEASURES = {
    "latency": ("Latency", "Time of one run, after so many milliseconds in which nothing ran."),
    "throughput": ("Throughput", "Runs a second by so many workers at the same time."),
    "steps": (
        "Steps",
        "What one create, one execution and one destroy are made of, beside the floor. The names of the steps are those "
        "of docs/observability.md; the line without a step is the whole call.",
    ),
    "growth": ("Growth", "What single operations cost while something grows, each beside the floor of that moment."),
    "memory": (
        "Memory",
        "PSS and page tables of all processes; the kernel's part is what slab, kernel stacks and "
        "memory of single processors grew by on the whole machine.",
    ),
    "output": ("Output", "Rates at which a program's writes arrive; ratios are of rates, more is better."),
    "workspace": ("Workspace", "Files of 100 bytes, copied in and deleted, in a sandbox and without one."),
    "limits": ("Limits", "From the crossing of a limit until the program is dead and its end reported."),
    "ramp": ("Ramp", "Programs that run at the same time, each in a sandbox of its own."),
}
BARS = frozenset({"latency", "steps"})  # Few places on the axis, and many names.

Table = list[Sequence[str]]


def slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column holds words, the others numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines) + "\n"


def between(low: float, middle: float, high: float, certain: bool) -> str:
    words = charts.number(middle)
    return words if certain else f"{words} ({charts.number(low)} to {charts.number(high)})"


def interval(ratio: Ratio) -> str:
    return between(ratio.low, ratio.value, ratio.high, certain=ratio.low == ratio.high)


def spread(figure: Figure) -> str:
    return between(figure.low, figure.median, figure.high, certain=figure.samples == 1)


def distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def heads(figures: Sequence[Figure], unit: str) -> list[str]:
    """Of a table with names down and places across."""
    axis = figures[0].axis
    places = [charts.number(at) if axis else "median" for at in places_of(figures)]
    return [f"{unit}, by {axis}" if axis else unit, *places]


def places_of(figures: Sequence[Figure]) -> list[float]:
    return sorted({figure.at for figure in figures})


def pivot(figures: Sequence[Figure], names: Sequence[str], words: Callable[[Figure], str]) -> Table:
    by_key = {(figure.name, figure.at): figure for figure in figures}
    rows = []
    for name in names:
        found = [by_key.get((name, at)) for at in places_of(figures)]
        rows.append([name, *(words(one) if one else "" for one in found)])
    return rows


def medians(figures: Sequence[Figure]) -> str:
    names = distinct(figure.name for figure in figures)
    return table(heads(figures, figures[0].unit or "number"), pivot(figures, names, spread))


def own_base(figure: Figure) -> str:
    """What does the same without a sandbox, or without limits: it comes first."""
    return next(iter(figure.ratios), "")


def own_ratio(figure: Figure) -> str:
    return interval(figure.ratios[own_base(figure)]) if figure.ratios else ""


def ratios_to_own(figures: Sequence[Figure]) -> str:
    """One table for each thing that others are compared with."""
    text = ""
    for base in distinct(own_base(figure) for figure in figures if figure.ratios):
        compared = [figure for figure in figures if own_base(figure) == base != figure.name]
        if not compared:
            continue
        names = distinct(figure.name for figure in compared)
        text += "\n" + table(heads(compared, f"x {base}"), pivot(compared, names, own_ratio))
    return text


def ratios_to_peers(figures: Sequence[Figure]) -> str:
    """One table for each place: names down, peers across."""
    text = ""
    for at in places_of(figures):
        here = [figure for figure in figures if figure.at == at]
        peers = distinct(base for figure in here for base in list(figure.ratios)[1:])
        # How peers compare among themselves can be seen from the medians.
        rows = [
            [one.name, *(interval(one.ratios[peer]) if peer in one.ratios else "" for peer in peers)]
            for one in here
            if len(one.ratios) > 1 and one.name not in peers
        ]
        if rows:
            text += "\n" + table([f"{charts.number(at)} {here[0].axis}, x", *peers], rows)
    return text


def chart(title: str, figures: Sequence[Figure]) -> str:
    axis, unit = figures[0].axis, figures[0].unit
    if figures[0].measure in BARS:
        least = min(figure.at for figure in figures)
        here = [(figure.name, figure.median) for figure in figures if figure.at == least]
        return charts.bars(f"{title}: {charts.number(least)}", unit, here)
    names = distinct(figure.name for figure in figures)
    drawn = [
        charts.Line(name, [(one.at, one.median) for one in figures if one.name == name])
        for name in names
    ]
    return charts.lines(title, axis, unit, drawn)


def groups(figures: Iterable[Figure]) -> dict[tuple[str, str, str], list[Figure]]:
    """What can stand in one table: one measure, one axis, one unit."""
    grouped: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        grouped.setdefault((figure.measure, figure.axis, figure.unit), []).append(figure)
    return grouped


def section(figures: Sequence[Figure], title: str) -> tuple[str, dict[str, str]]:
    """One group, and its chart by file name where it has an axis."""
    text, drawings = "", {}
    if len({figure.at for figure in figures}) > 1 or figures[0].measure in BARS:
        name = slug(title) + ".svg"
        drawings[name] = chart(title, figures)
        text += f"\n![{title}]({name})\n"
    text += "\n" + medians(figures) + ratios_to_own(figures) + ratios_to_peers(figures)
    for figure in figures:
        if figure.note:
            text += f"\n{figure.name}: {figure.note.removesuffix('.')}.\n"
    return text, drawings


def sections(run: Run) -> tuple[str, dict[str, str]]:
    text, drawings = "", {}
    seen = set()
    for (measure, axis, _), figures in groups(in_order(run.figures)).items():
        heading, about = MEASURES.get(measure, (measure, ""))
        if measure not in seen:
            text += f"\n## {heading}\n\n{about}\n"
        seen.add(measure)
        words, drawn = section(figures, f"{heading} by {axis}" if axis else heading)
        text += words
        drawings |= drawn
    return text, drawings


def in_order(figures: Iterable[Figure]) -> list[Figure]:
    known = list(MEASURES)
    return sorted(
        figures, key=lambda one: known.index(one.measure) if one.measure in known else len(known)
    )


def target_table(figures: Sequence[Figure]) -> str:
    rows = []
    for target in TARGETS:
        measured = target.measured(figures)
        aim = f"{'>=' if target.at_least else '<='} {target.limit:g} {target.unit}"
        value = interval(measured) if measured else ""
        rows.append([target.what, aim, value, verdict(target, measured)])
    return table(["measure", "target", "measured", ""], rows)


def peer_list(run: Run) -> str:
    lines = []
    for peer in run.peers:
        command = " ".join(peer.get("command", []))
        how = f"`{command}`" if command else f"absent, {peer['absent']}"
        lines.append(f"- **{peer['name']}**: " + "; ".join([how, *peer.get("failures", ())]))
    return "\n".join(lines) + "\n"


def fingerprint(run: Run) -> str:
    return table(["", ""], [[key, str(value)] for key, value in {**run.machine, **run.surroundings}.items()])


def page(run: Run) -> tuple[str, dict[str, str]]:
    """The text of README.md, and the charts by file name."""
    body, drawings = sections(run)
    text = "# Benchmarks\n\n" + fingerprint(run)
    text += (
        "\nMedians, with the 10th and the 95th percentile; ratios of medians, with the interval that holds "
        "them in 95 of 100 repetitions. Variants took turns in random order. Only ratios within this run can "
        f"be compared: to V, the floor (`{FLOOR}`), to B (`bubblewrap`), and to each peer.\n"
    )
    for part, reason in run.missing.items():
        text += f"\nNot measured: {part}, {reason}\n"
    text += "\n## Targets\n\n" + target_table(run.figures)
    text += "\n## Peers\n\n" + peer_list(run)
    return text + body, drawings
