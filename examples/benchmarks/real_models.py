"""What rows of a real model say: success in all tasks, in the first and in the last ones, and differences between methods.

    cascade-memory bench run --outcomes TABLE --tasks banking77 --methods zero-shot similarity CASCADE --limit 300 --out ROWS
    python examples/benchmarks/real_models.py ROWS

The orders of a stream play the same questions, so a question counts once: its difference between two methods is the mean over
the orders, and the interval (95 %) is that of the mean over the questions. In the mean over streams, each of them counts alike.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from time_to_help import markdown

from cascade_memory.evaluation.bench.stage import order_of
from cascade_memory.looks.figure import new_figure, saved, styled
from cascade_memory.looks.palette import FAINT, INK, looks

Floats = NDArray[np.float64]
Rows = Sequence[dict[str, Any]]
EVERY = slice(None)


def successes(rows: Rows, stretch: slice = EVERY) -> Floats:
    """Return the success of each question in percent, as a mean over the orders that have it in this stretch; nan if none."""
    found = np.full((len(rows), rows[0]["n"]), np.nan)
    for line, row in zip(found, rows, strict=True):
        order = np.arange(row["n"]) if row["task"] == "lfd" else order_of(row["n"], row["seed"], row["order"])
        line[order[stretch]] = [100.0 * (mark == "1") for mark in row["success"][stretch]]
    played = ~np.isnan(found).all(axis=0)
    means = np.full(found.shape[1], np.nan)
    means[played] = np.nanmean(found[:, played], axis=0)
    return means


def mean_and_variance(values: Floats) -> tuple[float, float]:
    """Return the mean over the questions that were played, and the variance of that mean."""
    values = values[~np.isnan(values)]
    return float(values.mean()), float(values.var(ddof=1) / len(values))


def said(mean: float, variance: float) -> str:
    """Write a difference with its interval.

    >>> said(3.25, 1.0)
    '+3.2 [1.3, 5.2]'
    """
    half = 1.96 * float(np.sqrt(variance))
    return f"{mean:+.1f} [{mean - half:.1f}, {mean + half:.1f}]"


class Stream:
    """The rows of one stream, by method."""

    def __init__(self, rows: Rows, stretch: int) -> None:
        names = dict.fromkeys(row["method"] for row in rows)
        self.methods = {name: [row for row in rows if row["method"] == name] for name in names}
        self.rates = {"all": EVERY, f"first {stretch}": slice(stretch), f"last {stretch}": slice(-stretch, None)}
        self.pairs = {
            "against zero-shot": ("zero-shot", EVERY),
            f"first {stretch} against zero-shot": ("zero-shot", slice(stretch)),
            "against similarity": ("similarity", EVERY),
        }

    def differences(self, method: str) -> dict[str, tuple[float, float]]:
        """Return what a method solves more than others, with the variance, by the heading of the column."""
        mine = self.methods[method]
        return {
            name: mean_and_variance(successes(mine, part) - successes(self.methods[other], part))
            for name, (other, part) in self.pairs.items()
            if other in self.methods and other != method
        }

    def table(self) -> list[list[str]]:
        """Make a line for each method, under a line of headings."""
        lines = [["method", *self.rates, *self.pairs]]
        for method, rows in self.methods.items():
            rates = [f"{np.nanmean(successes(rows, part)):.1f}" for part in self.rates.values()]
            differences = self.differences(method)
            lines.append([method, *rates, *(said(*differences[name]) if name in differences else "" for name in self.pairs)])
        return lines


def over_all(streams: Sequence[Stream]) -> list[list[str]]:
    """Make the table of the means over the streams, of methods that all of them have."""
    names = list(streams[0].pairs)
    lines = [["method", *names]]
    for method in streams[0].methods:
        if not all(method in one.methods for one in streams):
            continue
        found = [one.differences(method) for one in streams]
        cells = []
        for name in names:
            parts = [one[name] for one in found if name in one]
            whole = len(parts) == len(streams)
            cells.append(
                said(sum(m for m, _ in parts) / len(parts), sum(v for _, v in parts) / len(parts) ** 2) if whole else ""
            )
        lines.append([method, *cells])
    return lines


def draw(streams: dict[str, Stream], target: Path) -> None:
    """Draw for each stream what the methods solve more than no memory does, with the interval."""
    shared = [one for one in next(iter(streams.values())).methods if all(one in stream.methods for stream in streams.values())]
    methods = [one for one in shared if one != "zero-shot"]
    look = looks(methods)
    with styled(9.5, **{"axes.grid.axis": "x"}):
        figure = new_figure(7.2, 0.8 + 0.28 * len(methods) * len(streams))
        for axes, (name, stream) in zip(
            figure.subplots(len(streams), 1, squeeze=False, sharex=True)[:, 0], streams.items(), strict=True
        ):
            for place, method in enumerate(methods):
                mean, variance = stream.differences(method)["against zero-shot"]
                half = 1.96 * float(np.sqrt(variance))
                style = look[method]
                axes.errorbar(mean, place, xerr=half, color=style.colour, fmt=style.mark, markersize=5, linewidth=1.6)
            axes.axvline(0.0, color=INK, linewidth=0.8)
            axes.set_yticks(range(len(methods)), methods)
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.set_title(name)
        figure.supxlabel("points more than without a memory, 95 % interval", color=FAINT, fontsize=9)
        saved(figure, [], target, dpi=150)


def main() -> None:
    """Print the tables of the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+", help="files that bench run --outcomes wrote, of one model")
    parser.add_argument("--stretch", type=int, default=100, help="how many tasks are the first and the last ones")
    parser.add_argument("--plot", type=Path, help="draw the differences into this file")
    options = parser.parse_args()
    rows = [json.loads(line) for path in options.rows for line in path.read_text(encoding="utf-8").splitlines()]
    streams: dict[str, Stream] = {}
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        streams[task] = Stream(mine, options.stretch)
        n, orders = mine[0]["n"], len({row["seed"] for row in mine})
        print(f"{task}, {n} tasks, {orders} {'order' if orders == 1 else 'orders'}\n\n{markdown(streams[task].table())}\n")
    if len(streams) > 1:
        print(f"the mean over {len(streams)} streams\n\n{markdown(over_all(list(streams.values())))}")
    if options.plot is not None:
        if not all("zero-shot" in stream.methods for stream in streams.values()):
            parser.error("the picture compares with no memory: play the method zero-shot on each stream as well")
        draw(streams, options.plot)


if __name__ == "__main__":
    main()
