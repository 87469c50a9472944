"""``cascade-memory bench report`` makes a page from rows; ``bench tune`` chooses parameters on the first tasks of a stream."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from cascade_memory.cli import bench_setup
from cascade_memory.cli.arguments import positive
from cascade_memory.cli.bench_data import add_data, folder_or_bundled
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench.names import TUNABLE


def add(bench: Commands) -> None:
    """Add the commands."""
    about = "make a page from the rows that shows where memory helps, and where not"
    command = bench.command("report", report, about)
    command.add_argument("rows", type=Path, help="the file that bench run wrote")
    command.add_argument("--out", type=Path, metavar="DIR", help="the folder for the page (default: beside the rows)")
    about = "compare also with these methods, besides zero-shot, similarity, NP-CBR and random"
    command.add_argument("--against", nargs="+", default=(), metavar="METHOD", help=about)
    command.add_argument("--tuning", type=Path, metavar="FILE", help="rows of bench tune to show as well")
    _add_tune(bench)


def _add_tune(bench: Commands) -> None:
    command = bench.command("tune", tune, "choose a method's parameters on the first tasks of a stream")
    command.add_argument("--task", required=True)
    command.add_argument("--method", choices=list(TUNABLE), default="Neural-LinLogUCB")
    bench_setup.add_options(command, tuned=True)
    command.add_argument("--limit", type=positive, default=300, help="only the first tasks of the stream (default 300)")
    command.add_argument("--seeds", type=positive, default=1, help="how many orders of them (default 1)")
    about = "values to try (default: the paper's)"
    command.add_argument("--learning-rates", type=float, nargs="+", metavar="X", help=about)
    about = "values to try (default: the paper's, 0.1 to 1)"
    command.add_argument("--alphas", type=float, nargs="+", metavar="X", help=about)
    command.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="number of parallel processes")
    command.add_argument("--out", type=Path, default=Path("results/tuning.jsonl"), help="the file for the rows")
    add_data(command)


def report(options: argparse.Namespace) -> int:
    """Write the page of the report."""
    from cascade_memory.evaluation.report.write import write_report

    target = write_report(options.rows, options.out or beside(options.rows), options.tuning, options.against)
    print(json.dumps({"report": str(target)}) if options.json else f"report: {target}")
    return 0


def beside(rows: Path) -> Path:
    """Return the default folder of a report, beside the rows.

    >>> beside(Path("results/bench.jsonl")).as_posix()
    'results/bench-report'
    """
    return rows.with_name(f"{rows.stem}-report")


def report_if_possible(rows: Path, folder: Path | None) -> None:
    """Write the page at the end of a run. If that fails, print why: the rows are kept in any case."""
    from cascade_memory.evaluation.report.write import write_report

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


def tune(options: argparse.Namespace) -> int:
    """Choose parameters, and print what the tuning cost."""
    from cascade_memory.evaluation.bench.plan import ALONE, Run
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.tuning import GRIDS, rate
    from cascade_memory.evaluation.bench.tuning import tune as tune_method
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    data = folder_or_bundled(options.data)
    if options.task not in ALONE:
        raise InvalidInput(f"{options.task!r} has no declared simulated solver to tune with; there are {', '.join(ALONE)}")
    if options.task not in CATALOGUE or not CATALOGUE[options.task].is_there(data):
        raise InvalidInput(f"no data for {options.task!r} in {data}: cascade-memory bench data lists what is there")
    setup = bench_setup.setup_of(options)
    wanted = setup.of(Run(options.task, options.method, 0, options.limit))
    shown = False if options.json else None
    play_all = partial(run_all, data=data, target=options.out, jobs=options.jobs, progress=shown, models=setup.folders)
    grids = {"learning_rate": options.learning_rates, "alpha": options.alphas}
    found = tune_method(wanted, options.seeds, play_all, {name: given or GRIDS[name] for name, given in grids.items()})
    parameters, best = found.winner[0], rate(found.winner)
    cost = {"runs": sum(len(rows) for _, rows in found.trials), "episodes": found.episodes, "seconds": round(found.seconds, 1)}
    if options.json:
        print(json.dumps({"simulated": True, "winner": parameters, "rate": best, **cost}))
        return 0
    lines = [[*(f"{value:g}" for value in trial[0].values()), f"{100 * rate(trial):.1f}"] for trial in found.trials]
    title = f"SIMULATED solver, {options.method} on {options.task}: success in percent"
    print_table(title, [*parameters, "success"], lines)
    print(f"winner: {', '.join(f'{name} {value:g}' for name, value in parameters.items())}: {100 * best:.1f} %")
    print(f"cost of the tuning: {cost['runs']} runs, {cost['episodes']:,} episodes, {cost['seconds']} s")
    print(f"rows: {options.out}")
    return 0
