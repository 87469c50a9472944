"""Draws charts as SVG on the server: they need no script, and their colours come from the stylesheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from cascade_memory.bandit import Interval
from cascade_memory.domain import counted
from cascade_memory.insight import Bin

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 12, 12, 30


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart: ``kind`` is its class in the stylesheet."""

    kind: str
    points: Sequence[tuple[float, float]]


class _Canvas:
    def __init__(self, label: str, height: int = _HEIGHT, *, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.height, self._x, self._y = height, x, y
        self.parts = [f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">']

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / max(high - low, 1e-9)

    def y(self, value: float) -> float:
        low, high = self._y
        return self.height - _BOTTOM - (self.height - _TOP - _BOTTOM) * (value - low) / max(high - low, 1e-9)

    def segment(self, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        places = (self.x(start[0]), self.y(start[1]), self.x(end[0]), self.y(end[1]))
        self.parts.append('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(kind, *places))

    def text(self, kind: str, x: float, y: float, text: str) -> None:
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')

    def axes(self, ticks_y: Sequence[tuple[float, str]], ticks_x: Sequence[tuple[float, str]]) -> None:
        low, high = self._x
        for value, name in ticks_y:
            self.segment("grid", (low, value), (high, value))
            self.text("tick end", _LEFT - 6, self.y(value) + 4, name)
        for place, (value, name) in enumerate(ticks_x):
            anchor = "tick start" if not place and len(ticks_x) > 1 else "tick end" if place == len(ticks_x) - 1 else "tick mid"
            self.text(anchor, self.x(value), self.height - 10, name)

    def path(self, line: Line) -> None:
        places = " ".join(f"{'L' if place else 'M'}{self.x(x):.1f} {self.y(y):.1f}" for place, (x, y) in enumerate(line.points))
        if line.points:
            self.parts.append(f'<path class="line {line.kind}" d="{places}"/>')

    def done(self) -> Markup:
        return Markup("".join([*self.parts, "</svg>"]))


def _percents(*values: int) -> list[tuple[float, str]]:
    return [(value / 100, f"{value} %") for value in values]


def over_time(label: str, lines: Sequence[Line], last: int) -> Markup:
    """Draw rates between 0 and 1 over the episodes."""
    canvas = _Canvas(label, x=(1, max(2, last)), y=(0.0, 1.0))
    middle = max(1, last // 2)
    canvas.axes(_percents(0, 25, 50, 75, 100), [(1, "1"), (middle, f"{middle:,}"), (last, counted(last, "episode"))])
    for line in lines:
        canvas.path(line)
    return canvas.done()


def surprise(label: str, line: Line, last: int) -> Markup:
    """Draw the difference between reward and prediction over the episodes; 0 means that the prediction was right."""
    reach = max(0.2, math.ceil(10 * max((abs(y) for _, y in line.points), default=0.0)) / 10)
    canvas = _Canvas(label, 180, x=(1, max(2, last)), y=(-reach, reach))
    points = f"{100 * reach:.0f}"
    canvas.axes([(-reach, f"−{points}"), (0.0, "0"), (reach, f"+{points}")], [(1, "1"), (last, counted(last, "episode"))])
    canvas.segment("zero", (1, 0.0), (max(2, last), 0.0))
    canvas.path(line)
    return canvas.done()


def calibration(label: str, bins: Sequence[Bin]) -> Markup:
    """Draw predicted against observed success; a larger dot stands for more episodes."""
    canvas = _Canvas(label, 300, x=(0.0, 1.0), y=(0.0, 1.0))
    canvas.axes(_percents(0, 25, 50, 75, 100), [(0.0, "0 %"), (0.5, "50 % predicted"), (1.0, "100 %")])
    canvas.segment("zero", (0.0, 0.0), (1.0, 1.0))
    most = max((one.episodes for one in bins), default=1)
    for one in bins:
        radius = 4 + 8 * math.sqrt(one.episodes / most)
        title = f"{one.predicted:.0%} predicted, {one.came:.0%} observed in {counted(one.episodes, 'episode')}"
        canvas.parts.append(
            f'<circle class="dot" cx="{canvas.x(one.predicted):.1f}" cy="{canvas.y(one.came):.1f}" r="{radius:.1f}">'
            f"<title>{escape(title)}</title></circle>"
        )
    return canvas.done()


def intervals(label: str, rows: Sequence[tuple[str, str, Interval]]) -> Markup:
    """Draw means with their 95 % intervals: (name, class, interval) for each row."""
    height = _TOP + _BOTTOM + 56 * len(rows)
    canvas = _Canvas(label, height, x=(0.0, 1.0), y=(0.0, float(len(rows))))
    for value, name in _percents(0, 25, 50, 75, 100):
        canvas.segment("grid", (value, 0.0), (value, float(len(rows))))
        canvas.text("tick mid" if 0 < value < 1 else "tick end" if value else "tick start", canvas.x(value), height - 10, name)
    for place, (name, kind, one) in enumerate(rows):
        y = len(rows) - place - 0.7
        canvas.segment(f"range {kind}", (max(0.0, one.low), y), (min(1.0, one.high), y))
        canvas.parts.append(f'<circle class="dot {kind}" cx="{canvas.x(one.estimate):.1f}" cy="{canvas.y(y):.1f}" r="6"/>')
        canvas.text(
            "name", _LEFT, canvas.y(y) - 16, f"{name}: {one.estimate:.0%} ({max(0.0, one.low):.0%} to {min(1.0, one.high):.0%})"
        )
    return canvas.done()


def weights(label: str, rows: Sequence[tuple[str, float, float]]) -> Markup:
    """Draw the weight of each signal before any reward (hollow) and now (filled).

    The axis shows square roots, so that a weight of 10 leaves room for the weights below 1.
    """
    places = [_root(value) for _, *both in rows for value in both]
    reach, low = max(map(abs, places), default=1.0) or 1.0, min([0.0, *places])
    row, left, width = 30, 150, _WIDTH
    height = row * len(rows) + 30

    def x(value: float) -> float:
        return left + (width - left - 70) * (_root(value) - low) / max(reach - low, 1e-9)

    parts = [f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">']
    parts.append(f'<line class="zero" x1="{x(0):.1f}" y1="4" x2="{x(0):.1f}" y2="{height - 24}"/>')
    for place, (name, before, now) in enumerate(rows):
        y = place * row + 18
        parts.append(f'<text class="name end" x="{left - 12}" y="{y + 4}">{escape(name)}</text>')
        parts.append(f'<line class="range" x1="{x(before):.1f}" y1="{y}" x2="{x(now):.1f}" y2="{y}"/>')
        parts.append(f'<circle class="hollow" cx="{x(before):.1f}" cy="{y}" r="5"/>')
        parts.append(f'<circle class="dot" cx="{x(now):.1f}" cy="{y}" r="5"/>')
        parts.append(f'<text class="tick start" x="{max(x(before), x(now)) + 10:.1f}" y="{y + 4}">{now:.2f}</text>')
    parts.append(f'<text class="tick mid" x="{x(0):.1f}" y="{height - 8}">0</text></svg>')
    return Markup("".join(parts))


def _root(value: float) -> float:
    return math.copysign(math.sqrt(abs(value)), value)


def contribution_bars(names: Sequence[str], values: Sequence[float], scale: float) -> Markup | None:
    """Draw what each signal adds to the value of a candidate; None if nothing is known."""
    if not values or scale <= 0.0:
        return None
    row, left, middle, half = 20, 118, 265, 135
    height = row * len(values) + 4
    label = ", ".join(f"{name} {value:+.2f}" for name, value in zip(names, values, strict=False))
    parts = [f'<svg class="bars" viewBox="0 0 464 {height}" role="img" aria-label="{escape(label)}">']
    parts.append(f'<line class="zero" x1="{middle}" y1="0" x2="{middle}" y2="{height}"/>')
    for place, (name, value) in enumerate(zip(names, values, strict=False)):
        y, length = place * row + 3, half * min(1.0, abs(value) / scale)
        start = middle if value >= 0 else middle - length
        parts.append(f'<text class="name end" x="{left}" y="{y + 12}">{escape(name)}</text>')
        kind, length = "up" if value >= 0 else "down", max(length, 0.5)
        parts.append(f'<rect class="{kind}" x="{start:.1f}" y="{y}" width="{length:.1f}" height="14"/>')
        anchor, x = ("start", middle + length + 6) if value >= 0 else ("end", middle - length - 6)
        parts.append(f'<text class="tick {anchor}" x="{x:.1f}" y="{y + 12}">{value:+.2f}</text>')
    return Markup("".join([*parts, "</svg>"]))
