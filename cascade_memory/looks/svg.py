"""Draws a panel of curves as a small SVG for a page, with the page's colours and without matplotlib."""

from __future__ import annotations

import html
import math

from cascade_memory.looks.curves import Curve, Panel, Point, spread, thinned
from cascade_memory.looks.palette import as_variable
from cascade_memory.visible import visible

_LETTERS = 13.0  # the size of the letters, in a picture of 420 x 210
_LETTER = 0.64 * _LETTERS  # the width of an average one, rather too wide
_WIDTH, _LEFT, _TOP, _BOTTOM = 420.0, 44.0, 12.0, 34.0
_DASHES = {"-": "", "--": "7 4", ":": "2 3", "-.": "8 3 2 3"}


def svg(panel: Panel, height: float = 210.0) -> str:
    """Draw a panel; the names of its curves stand at their ends. The page must declare the CSS variables of the palette.

    >>> from cascade_memory.looks.palette import looks
    >>> curve = Curve("CASCADE", [(1, 0.2), (2, 0.8)], looks(["CASCADE"])["CASCADE"])
    >>> svg(Panel("Success", "episode", [curve], "It rose.", shares=True))[:60]
    '<svg viewBox="0 0 420 210" role="img" aria-label="It rose.">'
    """
    field = _Field(panel, height)
    parts = [field.axes(), *(field.line(curve) for curve in panel.curves if curve.points), field.names()]
    head = f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{html.escape(visible(panel.words))}">'
    return f"{head}{''.join(parts)}</svg>"


class _Field:
    """The part of the picture in which the curves are."""

    def __init__(self, panel: Panel, height: float) -> None:
        self.panel = panel
        longest = max((len(visible(curve.name)) for curve in panel.curves if curve.points), default=0)
        self.right = _WIDTH - 14 - longest * _LETTER
        self.low, self.high = height - _BOTTOM, _TOP
        ends = [x for curve in panel.curves for x, _ in curve.points]
        self.first, self.last = (min(ends), max(ends)) if ends else (0.0, 1.0)

    def at(self, point: Point) -> Point:
        along = (point[0] - self.first) / ((self.last - self.first) or 1.0)
        up = min(max(point[1] / self.panel.top, 0.0), 1.0)
        return _LEFT + along * (self.right - _LEFT), self.low - up * (self.low - self.high)

    def axes(self) -> str:
        lines = "".join(self._level(level) for level in _levels(self.panel))
        middle = (_LEFT + self.right) / 2
        places = [(self.first, "start", _LEFT), (self.last, "end", self.right)][: 2 if self.last > self.first else 1]
        marks = "".join(_text(x, self.low + 16, _number(value), anchor) for value, anchor, x in places)
        return lines + marks + _text(middle, self.low + 29, self.panel.below, "middle")

    def _level(self, level: float) -> str:
        _, y = self.at((self.first, level))
        said = f"{100 * level:.0f} %" if self.panel.shares else _number(level)
        rule = f'<path d="M{_LEFT:g} {y:.1f}H{self.right:.1f}" style="stroke:var(--line)"/>'
        return rule + _text(_LEFT - 6, y + 4, said, "end")

    def line(self, curve: Curve) -> str:
        points = [self.at(point) for point in thinned(curve.points)]
        colour = as_variable(curve.look.colour)
        if len(points) == 1:
            (x, y), *_ = points
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" style="fill:{colour}"/>'
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dash = f";stroke-dasharray:{_DASHES[curve.look.dash]}" if _DASHES[curve.look.dash] else ""
        return f'<path d="M{path}" style="fill:none;stroke:{colour};stroke-width:{curve.width:g};stroke-linejoin:round{dash}"/>'

    def names(self) -> str:
        curves = [curve for curve in self.panel.curves if curve.points and curve.name]
        ends = [self.at(curve.points[-1]) for curve in curves]
        places = spread([y for _, y in ends], 1.25 * _LETTERS, self.high, self.low)
        found: list[str] = []
        for curve, (x, y), place in zip(curves, ends, places, strict=True):
            colour = as_variable(curve.look.colour)
            found.append(f'<path d="M{x + 2:.1f} {y:.1f}L{self.right + 9:.1f} {place:.1f}" style="stroke:{colour};fill:none"/>')
            found.append(_text(self.right + 12, place + 4, visible(curve.name), "start", f"fill:{colour};font-weight:600"))
        return "".join(found)


def _text(x: float, y: float, text: str, anchor: str, style: str = "fill:var(--faint)") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} style="{style};font-size:{_LETTERS:g}px">{html.escape(text)}</text>'


def _levels(panel: Panel) -> list[float]:
    """Choose three heights for the lines behind the curves.

    >>> _levels(Panel("", "", [], "", shares=True)), _levels(Panel("", "", [], ""))
    ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    """
    step = panel.top / 2
    if panel.top > 1:
        size = 10 ** math.floor(math.log10(step))
        step = max(one * size for one in (1, 2, 5) if one * size <= step)
    return [i * step for i in range(1 + math.floor(panel.top / step + 1e-9))]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"
