"""Charts with matplotlib: one style, and names at the ends of the lines. matplotlib is imported where it is needed."""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_memory.errors import MissingExtra
from cascade_memory.looks.curves import Panel, spread
from cascade_memory.looks.palette import FAINT, INK, PAGE, SHADES
from cascade_memory.visible import visible

_FONTS = ("Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans")
_RC: dict[Any, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": "medium",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.xmargin": 0.02,
    "lines.solid_joinstyle": "round",
    "figure.facecolor": PAGE,
    "axes.facecolor": "none",
    "grid.color": SHADES["other"][0],
    "grid.alpha": 0.45,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "ytick.major.size": 0,
    "svg.fonttype": "none",
}
_LINE = 1.22  # the height of a line of text, in font sizes
_WAY = 14  # points from the end of a line to its name


def need_matplotlib(what: str) -> None:
    """Raise an error if matplotlib is missing; the message says what to install."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f'{what} needs the extra "plot": pip install "cascade-memory[plot]"') from error


@contextmanager
def styled(size: float = 10, **more: Any) -> Generator[None, None, None]:
    """Draw in the style of this package; ``size`` is the font size in points."""
    import matplotlib as mpl
    from matplotlib import font_manager

    there = set(font_manager.get_font_names())
    fonts = [name for name in _FONTS if name in there]
    settings: dict[Any, Any] = {**_RC, "font.size": size, "font.family": fonts or "sans-serif", **more}
    with mpl.rc_context(settings):
        yield


def new_figure(width: float, height: float) -> Any:
    """Create a figure with its size in inches; it leaves room for what stands outside its axes."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.14)
    return figure


@dataclass(frozen=True, slots=True)
class End:
    """The end of a line: its name, its height there, and its colour."""

    name: str
    y: float
    colour: str


class EndNames:
    """The names to the right of some axes, each at the end of its line, or as near to that as the other names allow."""

    def __init__(self, axes: Any, ends: Sequence[End], size: float) -> None:
        self._axes, self._ends, self._size = axes, ends, size
        self.texts = [self._text(end) for end in ends]

    def _text(self, end: End) -> Any:
        # The offset is in points, which the layout does not change.
        return self._axes.annotate(
            end.name,
            (1.0, end.y),
            (_WAY, 0),
            xycoords=self._axes.get_yaxis_transform(),
            textcoords="offset points",
            color=end.colour,
            fontsize=self._size,
            va="center",
            annotation_clip=False,
            parse_math=False,
        )

    def settle(self) -> None:
        """Move the names apart, and draw a thin line from the end of each curve to its name; the layout must be done before."""
        box = self._axes.get_window_extent()
        points = 72 / self._axes.figure.dpi
        heights = [points * self._axes.transData.transform((0, end.y))[1] for end in self._ends]
        low, high = points * box.y0, points * box.y1
        inside = [min(max(height, low), high) for height in heights]
        for text, end, start, height in zip(
            self.texts, self._ends, inside, spread(inside, _LINE * self._size, low, high), strict=True
        ):
            text.xy = (1.0, self._axes.transData.inverted().transform((0, start / points))[1])
            text.set_position((_WAY, height - start))
            self._axes.annotate(
                "",
                text.xy,
                (_WAY - 2, height - start),
                xycoords=self._axes.get_yaxis_transform(),
                textcoords="offset points",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": end.colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 1},
            )


def saved(figure: Any, names: Sequence[EndNames], target: Path | io.StringIO | io.BytesIO, **how: Any) -> None:
    """Move the names apart and write the figure.

    Letters that the font lacks cause no warning; only a PNG shows boxes in their place.
    """
    with quiet():
        settled(figure, names)
        figure.savefig(target, **how)


def settled(figure: Any, names: Sequence[EndNames]) -> None:
    """Lay the figure out, and then move the names to where they belong."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for one in names:
        one.settle()


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Draw without warnings about letters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


_WIDTH, _HEIGHT = 3.6, 2.7  # inches of a panel
_LETTERS = 10.0


def figure_of(panels: Sequence[Panel], what: str, width: float = _WIDTH) -> Any:
    """Draw panels beside each other; if matplotlib is missing, the error says that ``what`` needs it."""
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
