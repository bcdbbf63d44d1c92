"""Charts as SVG text, written by hand: lines over an axis, and bars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 220, 60, 50
BAR_HEIGHT, BAR_LABEL, BAR_TOP = 22, 190, 40
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#4a4e69", "#0f8b8d", "#a23b72")
# An axis whose ends are further apart has decades instead of even steps.
EVEN_UP_TO = 20


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Scale:
    """Values to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = (math.log10(max(x, self.low)) for x in (value, low, high))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            step = step_for(self.high - self.low)
            return [self.low + step * i for i in range(round((self.high - self.low) / step) + 1)]
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)] or [self.low, self.high]


def step_for(length: float) -> float:
    """A round number of which about five make up the length."""
    decade = 10.0 ** math.floor(math.log10(length / 5))
    return next(decade * factor for factor in (1, 2, 5, 10) if decade * factor * 5 >= length * 0.999)


def scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Even steps from zero, or decades where the values are far apart."""
    positive = [value for value in values if value > 0]
    high = max(positive, default=1.0)
    low = min(positive, default=1.0)
    if high / low > EVEN_UP_TO:
        # Whole decades, so that there is a tick at either end.
        return Scale(
            10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)), start, end, True
        )
    step = step_for(high)
    return Scale(0.0, math.ceil(high / step - 1e-9) * step, start, end, False)


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}{extra}>{escape(words)}</text>"


def frame(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">'
    )
    background = f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>'
    heading = text(12, 22, title, extra=' font-size="15" font-weight="bold"')
    return "\n".join((head, background, heading, *parts, "</svg>")) + "\n"


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def axes(across: Scale, up: Scale, axis: str, unit: str) -> list[str]:
    parts = []
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(rule(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(text(x, HEIGHT - BOTTOM + 16, number(tick), "middle"))
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(text(LEFT - 8, y + 4, number(tick), "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, axis, "middle"))
    parts.append(text(LEFT - 8, TOP - 14, unit, "end"))
    return parts


def lines(title: str, axis: str, unit: str, drawn: Sequence[Line]) -> str:
    """One line for each name, with a legend beside them."""
    across = scale([x for line in drawn for x, _ in line.points], LEFT, WIDTH - RIGHT)
    up = scale([y for line in drawn for _, y in line.points], HEIGHT - BOTTOM, TOP)
    parts = axes(across, up, axis, unit)
    for index, line in enumerate(drawn):
        colour = COLOURS[index % len(COLOURS)]
        places = [(across.place(x), up.place(y)) for x, y in sorted(line.points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 10 + index * 18
        parts.append(f'<rect x="{WIDTH - RIGHT + 16}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 32, y, line.name))
    return frame(WIDTH, HEIGHT, title, parts)


def bars(title: str, unit: str, drawn: Sequence[tuple[str, float]]) -> str:
    """One bar for each name, the shortest above."""
    ordered = sorted(drawn, key=lambda bar: bar[1])
    across = scale([value for _, value in ordered], BAR_LABEL, WIDTH - 100)
    parts = []
    for index, (name, value) in enumerate(ordered):
        y = BAR_TOP + index * BAR_HEIGHT
        end = max(across.place(value), BAR_LABEL + 1)
        colour = COLOURS[0]
        parts.append(text(BAR_LABEL - 8, y + 14, name, "end"))
        parts.append(
            f'<rect x="{BAR_LABEL}" y="{y + 3}" width="{end - BAR_LABEL:.1f}" height="16" fill="{colour}"/>'
        )
        parts.append(text(end + 6, y + 15, f"{number(value)} {unit}"))
    height = BAR_TOP + len(ordered) * BAR_HEIGHT + 28
    note = "each decade as long as the other" if across.logarithmic else "from zero"
    parts.append(text(BAR_LABEL, height - 10, f"{unit}, {note}"))
    return frame(WIDTH, height, title, parts)
