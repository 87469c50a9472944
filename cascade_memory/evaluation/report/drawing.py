"""Draws charts: each panel as an SVG with the page's colours, and all panels of a chart as one PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_memory.errors import MissingExtra
from cascade_memory.evaluation.report.palette import FAINT, INK, ON_DARK, Look

_WIDTH = 4.3  # inches; a phone shows a panel at about this size
_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot with its own axes."""

    title: str
    about: str  # a description for readers who cannot see it
    draw: Callable[[Any], None]
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


def need_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is missing."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise MissingExtra('the report needs the extra "plot": pip install "cascade-memory[plot]"') from error


def svg(panel: Panel, name: str) -> str:
    """Draw a panel as an SVG element whose colours are variables of the page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_RC, "svg.hashsalt": name}):
        figure: Any = Figure(figsize=(_WIDTH, panel.height), layout="constrained")
        panel.draw(figure.subplots())
        target = io.StringIO()
        _save(figure, target, format="svg", transparent=True, metadata={"Date": None})
    return _inline(target.getvalue())


def png(chart: Chart, solver: str, target: Path) -> None:
    """Draw all panels of a chart side by side into a file, with the name of the solver."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = min(3, len(chart.panels))
    lines = -(-len(chart.panels) // columns)
    height = max(panel.height for panel in chart.panels) + 0.3
    with mpl.rc_context(_RC):
        figure: Any = Figure(figsize=(_WIDTH * columns, height * lines + 0.6), layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, chart.panels, strict=False):
            panel.draw(axes)
            axes.set_title(brief(panel.title, 44), parse_math=False)
        for axes in grid[len(chart.panels) :]:
            axes.set_axis_off()
        if chart.legend:
            _legend(figure, chart.legend)
        figure.suptitle(brief(f"{chart.heading} · {solver}", 90), parse_math=False)
        _save(figure, target, dpi=120)


def _save(figure: Any, target: Path | io.StringIO, **how: Any) -> None:
    with warnings.catch_warnings():  # about letters that the font lacks: only the PNG shows boxes for them
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, **how)


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
    for colour in ON_DARK:
        text = text.replace(colour, f"var(--c{colour[1:]})")
    return text.replace("<svg ", '<svg aria-hidden="true" ', 1)
