"""Draws charts: each panel as an SVG with the page's colours, and all panels of a chart as one PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_memory.looks import EndNames, Look, new_figure, saved, styled, with_variables

_COLUMNS = 2
_WIDTH = 4.3  # inches; a phone shows a panel at about this size
_LETTERS = 10.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot with its own axes."""

    title: str
    about: str  # a description for readers who cannot see it
    draw: Callable[[Any], EndNames | None]  # returns the names at the ends of its lines, if it has any
    height: float = 2.7


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels with a common heading, caption and legend."""

    name: str
    heading: str
    caption: str
    panels: Sequence[Panel]
    legend: dict[str, Look] = field(default_factory=dict[str, Look])


def brief(text: str, most: int = 20) -> str:
    """Shorten a name that would take too much room in the picture.

    >>> brief("find-the-longest-lived-thing", 12)
    'find-the-lo…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def svg(panel: Panel, name: str) -> str:
    """Draw a panel as an SVG element whose colours are variables of the page."""
    with styled(_LETTERS, **{"svg.hashsalt": name}):
        figure = new_figure(_WIDTH, panel.height)
        names = [panel.draw(figure.subplots())]
        target = io.StringIO()
        saved(figure, [one for one in names if one], target, format="svg", transparent=True, metadata={"Date": None})
    return _inline(target.getvalue())


def png(chart: Chart, solver: str, target: Path) -> None:
    """Draw all panels of a chart into a file, two beside each other, with the name of the solver."""
    columns = min(_COLUMNS, len(chart.panels))
    lines = -(-len(chart.panels) // columns)
    height = max(panel.height for panel in chart.panels) + 0.3
    with styled(_LETTERS):
        figure = new_figure(_WIDTH * columns, height * lines + 0.6)
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        names: list[EndNames | None] = []
        for axes, panel in zip(grid, chart.panels, strict=False):
            names.append(panel.draw(axes))
            axes.set_title(brief(panel.title, 44), parse_math=False)
        for axes in grid[len(chart.panels) :]:
            axes.set_axis_off()
        if chart.legend:
            _legend(figure, chart.legend)
        figure.suptitle(brief(f"{chart.heading} · {solver}", 80), parse_math=False, x=0.01, ha="left")
        saved(figure, [one for one in names if one], target, dpi=150)


def _legend(figure: Any, legend: dict[str, Look]) -> None:
    from matplotlib.lines import Line2D

    line: Any = Line2D
    lines = [line([], [], color=look.colour, linestyle=look.dash, marker=look.mark) for look in legend.values()]
    shown = figure.legend(
        lines, [brief(name, 36) for name in legend], loc="outside lower center", ncols=min(4, len(legend)), frameon=False
    )
    for text in shown.get_texts():
        text.set_parse_math(False)


def _inline(text: str) -> str:
    """Reduce an SVG to what a page needs: without header, metadata, fixed size, and ids that other pictures use as well."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), text)
    return with_variables(text).replace("<svg ", '<svg aria-hidden="true" ', 1)
