"""``cascade-memory bench report``: makes a page from rows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput, MissingExtra


def add(bench: Commands) -> None:
    """Add the command."""
    about = "make a page from the rows that shows where memory helps, and where not"
    command = bench.command("report", report, about)
    command.add_argument("rows", type=Path, help="the file that bench run wrote")
    command.add_argument("--out", type=Path, metavar="DIR", help="the folder for the page (default: beside the rows)")
    about = "compare also with these methods, besides zero-shot, similarity, NP-CBR and random"
    command.add_argument("--against", nargs="+", default=(), metavar="METHOD", help=about)
    command.add_argument("--tuning", type=Path, metavar="FILE", help="rows of bench tune to show as well")


def report(options: argparse.Namespace) -> int:
    """Write the page of the report."""
    from cascade_memory.evaluation.report.page import write_report

    target = write_report(options.rows, options.out or beside(options.rows), options.tuning, options.against)
    print(json.dumps({"report": str(target)}) if options.json else f"report: {target}")
    return 0


def beside(rows: Path) -> Path:
    """Return the default folder of a report, beside the rows.

    >>> beside(Path("results/bench.jsonl")).as_posix()
    'results/bench-report'
    """
    return rows.parent / f"{rows.stem}-report"


def report_if_possible(rows: Path, folder: Path | None) -> None:
    """Write the page at the end of a run. If that fails, print why: the rows are kept in any case."""
    from cascade_memory.evaluation.report.page import write_report

    try:
        print(f"report: {write_report(rows, folder or beside(rows))}")
    except (MissingExtra, InvalidInput, OSError) as why:
        print(f"no report was written: {why}; to write it later: cascade-memory bench report {rows}")


def print_success(who: str, rows: list[dict[str, Any]]) -> None:
    """Print one table for each set of conditions among the rows of one solver; ``who`` names the solver in the titles."""
    from cascade_memory.evaluation.bench.conditions import by_conditions
    from cascade_memory.evaluation.bench.setup import told_apart
    from cascade_memory.evaluation.bench.summary import base_of, table

    for under, its in by_conditions(told_apart(rows)).items():
        seeds = len({row["seed"] for row in its})
        title = f"{who}{f'; {under}' if under else ''}; {seeds} {'order' if seeds == 1 else 'orders'}; success in percent"
        tasks = list(dict.fromkeys(row["task"] for row in its))
        print_table(f"{title}; last: more than {base_of(its)}, 95 % interval", ["method", *tasks, "gain"], table(its))
