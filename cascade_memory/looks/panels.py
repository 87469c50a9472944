"""Draws panels of curves as one matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_memory.looks.curves import Panel
from cascade_memory.looks.figure import End, EndNames, need_matplotlib, new_figure, quiet, settled, styled
from cascade_memory.visible import visible

_WIDTH, _HEIGHT = 3.6, 2.7  # inches of a panel
_LETTERS = 10.0


def figure_of(panels: Sequence[Panel], what: str, width: float = _WIDTH) -> Any:
    """Draw panels beside each other; ``what`` needs matplotlib, and says so if it is missing."""
    need_matplotlib(what)
    with styled(_LETTERS), quiet():
        figure = new_figure(width * len(panels), _HEIGHT)
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        names = [_draw(axes, panel) for axes, panel in zip(grid, panels, strict=True)]
        settled(figure, names)
    return figure


def _draw(axes: Any, panel: Panel) -> EndNames:
    for curve in panel.curves:
        xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
        dot = curve.look.mark if len(xs) == 1 else ""
        axes.plot(xs, ys, color=curve.look.colour, linestyle=curve.look.dash, linewidth=curve.width, marker=dot)
    axes.margins(x=0.01)
    axes.set_title(panel.title, parse_math=False)
    axes.set_xlabel(panel.below)
    axes.set_ylim(0, 1.02 * panel.top)
    if panel.shares:
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ends = [End(visible(curve.name), curve.points[-1][1], curve.look.colour) for curve in panel.curves if curve.name]
    return EndNames(axes, ends, _LETTERS)
