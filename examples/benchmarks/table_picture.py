"""Draw tables of docs/benchmarks.md: a panel for each column, with the methods at its left.

    python examples/benchmarks/table_picture.py docs/benchmarks.md --images docs/images

The figures are those of the tables, so the pictures need no rows and cannot say anything else. Each picture also
holds them as text, so that a test finds a picture that was not drawn again after its table had changed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cascade_memory.looks.figure import new_figure, saved, styled
from cascade_memory.looks.palette import FAINT, INK, looks

METHODS = ("CASCADE", "CASCADE, always a case", "Neural-LinLogUCB", "LinLogUCB", "similarity", "random", "zero-shot")
SHOWN = {"zero-shot": "no memory", "CASCADE, always a case": "always a case"}
TITLES = {
    "alfworld-20": "household, 20 steps",
    "alfworld-30": "household, 30 steps",
    "spider": "Spider (SQL)",
    "scienceworld": "ScienceWorld",
}
_ENCODER = {"frozen features, ": "frozen, ", "trained encoder, ": "trained, ", ", trained encoder": ", trained"}
SOLVED = re.compile(r"([\d.]+)(?: \([+-][\d.]+ ± ([\d.]+)\))?")
REGRET = re.compile(r"\*{0,2}(\d+) ± (\d+)")
FIGURES = "Figures"  # the name of the text in a picture
_LOOKS = looks(METHODS)
_WIDTH = 7.2  # inches, so that a letter is large enough on a phone


class Figure(NamedTuple):
    """What a cell of the table says."""

    value: float
    half: float | None  # of its interval


Table = dict[str, dict[str, Figure]]  # by column and method


def table_of(text: str, first: str, cells: re.Pattern[str]) -> Table:
    """Return the figures from the table whose first column has this name; columns without such cells are left out.

    >>> text = "| | a | average |\\n|---|---|---|\\n| similarity | 3.5 | – |\\n| mine † | 4.0 (+0.5 ± 0.2) | – |\\n"
    >>> table_of(text, "a", SOLVED)
    {'a': {'similarity': Figure(value=3.5, half=None), 'mine': Figure(value=4.0, half=0.2)}}
    """
    lines = text[text.index(f"| | {first} |") :].splitlines()
    columns = [one.strip() for one in lines[0].strip("|").split("|")][1:]
    found: Table = {column: {} for column in columns if column not in ("average", "exponent")}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        method, *said = (one.strip() for one in line.strip("|").split("|"))
        for column, cell in zip(columns, said, strict=True):
            if column in found and (figure := cells.match(cell)):
                half = None if figure[2] is None else float(figure[2])
                found[column][method.removesuffix(" †")] = Figure(float(figure[1]), half)
    return {column: its for column, its in found.items() if its}


def draw(table: Table, title: str, about: str, target: Path, *, methods: Sequence[str], columns: int, base: str = "") -> None:
    """Draw the panels; the methods have the colours that they always have, and ``base`` has a line through the panel."""
    lines = -(-len(table) // columns)
    with styled(9.5, **{"axes.grid.axis": "x", "axes.xmargin": 0.06}):
        figure = new_figure(_WIDTH, 0.7 + lines * (0.45 + 0.2 * len(methods)))
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, (column, its) in zip(grid, table.items(), strict=False):
            _panel(axes, its, [one for one in methods if one in its])
            if base:
                axes.axvline(its[base].value, color=INK, linewidth=0.8)
            axes.set_title(TITLES.get(column, column))
        for axes in grid[len(table) :]:
            axes.set_axis_off()
        figure.suptitle(title, x=0.01, ha="left")
        figure.supxlabel(about, color=FAINT, fontsize=9)
        saved(figure, [], target, dpi=150, metadata={FIGURES: as_text(table, methods)})


def as_text(table: Table, methods: Sequence[str]) -> str:
    """Write down what a picture shows.

    >>> as_text({"a": {"similarity": Figure(3.5, None), "mine": Figure(4.0, 0.2)}}, ["mine", "similarity"])
    '{"a": {"mine": [4.0, 0.2], "similarity": [3.5, null]}}'
    """
    return json.dumps({column: {one: its[one] for one in methods if one in its} for column, its in table.items()})


def _panel(axes: Any, its: dict[str, Figure], methods: Sequence[str]) -> None:
    colours: list[str] = []
    for place, method in enumerate(methods):
        value, half = its[method]
        below = min(half or 0.0, value)  # nothing that is counted is less than 0
        style = _LOOKS.get(method) or _LOOKS.get(method.split(", ")[0])
        colours.append(style.colour if style else FAINT)
        mark = style.mark if style else "o"
        axes.errorbar(value, place, xerr=[[below], [half or 0.0]], color=colours[-1], fmt=mark, markersize=5, linewidth=1.6)
    axes.set_yticks(range(len(methods)), [_short(one) for one in methods])
    for label, colour in zip(axes.get_yticklabels(), colours, strict=True):
        label.set_color(colour)
    axes.set_ylim(len(methods) - 0.5, -0.5)


def _short(method: str) -> str:
    for long, short in _ENCODER.items():
        method = method.replace(long, short)
    return SHOWN.get(method, method)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--images", type=Path, required=True)
    options = parser.parse_args()
    text = options.page.read_text(encoding="utf-8")
    about = "bars: 95 % interval of the difference to the most similar case (the line)"
    for first, solver, name in (("banking77", "SIMULATED solver", "simulated"), ("scienceworld", "reuse agents", "reuse")):
        table, title = table_of(text, first, SOLVED), f"Tasks solved, % · {solver}, no language model"
        draw(table, title, about, options.images / f"local_{name}.png", methods=METHODS, columns=2, base="similarity")
    table = table_of(text, "logistic: regret", REGRET)
    bandits = [one for one in table["logistic: regret"] if one != "random"]
    title, about = "Regret after 5,000 rounds in three simulated worlds", "less is better; bars: 95 % interval over five seeds"
    draw(table, title, about, options.images / "worlds.png", methods=bandits, columns=1)


if __name__ == "__main__":
    main()
