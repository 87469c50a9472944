"""``cascade-memory bench run``: plays streams of tasks with every method, and prints how often each succeeded."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli import bench_beside, bench_options, bench_own, bench_paper, bench_report
from cascade_memory.cli.arguments import check_writable, positive, share
from cascade_memory.cli.bench_data import add_data, folder_or_bundled, is_bundled
from cascade_memory.cli.groups import Commands
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import FILE, SHUFFLED, SUITE_NAMES

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.plan import Suite

# Suites whose runs are played in a way of their own.
_BESIDE = {
    bench_beside.MEASURES: bench_beside.measures,
    bench_beside.ATTACKS: bench_beside.attacks,
    bench_beside.NAME: bench_beside.run,
}


def add(bench: Commands) -> None:
    """Add the command."""
    command = bench.command("run", run, "play streams with every method; it continues where it was stopped")
    about = "quick takes minutes, the others hours"
    suites = [*SUITE_NAMES, *_BESIDE]
    command.add_argument("--suite", choices=suites, default="quick", help=about)
    command.add_argument("--tasks", nargs="+", metavar="TASK", help="only these tasks of the suite")
    command.add_argument(
        "--methods", nargs="+", metavar="METHOD", help="only these methods, of any suite, or module:Class, a memory of your own"
    )
    _add_extent(command)
    _add_conditions(command)
    about = 'of --suite warnings: when agents do what they were warned of: never (default), or as a "last resort"'
    command.add_argument("--heeds", nargs="+", default=["never"], metavar="HOW", help=about)
    command.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="number of parallel processes")
    command.add_argument("--out", type=Path, default=Path("results/bench.jsonl"), help="the file for the rows")
    about = "the folder for the report (default: beside the rows)"
    command.add_argument("--report", type=Path, metavar="DIR", help=about)
    add_data(command)
    bench_options.add_setup(command)
    bench_own.add_options(command)


def _add_extent(command: argparse.ArgumentParser) -> None:
    """Add the options that say how much of each stream is played, and in which order."""
    command.add_argument("--seeds", type=positive, help="how many times each stream is played")
    command.add_argument("--limit", type=positive, help="only the first tasks of each stream")
    about = "shuffled: another order for each seed (default); file: the stream's own for every seed (default of --suite paper)"
    command.add_argument("--order", choices=[SHUFFLED, FILE], help=about)
    about = "with --suite paper: say what it would take, and play nothing"
    command.add_argument("--dry-run", action="store_true", help=about)


def _add_conditions(command: argparse.ArgumentParser) -> None:
    """Add the options that make a stream harder."""
    hard = command.add_argument_group("under harder conditions (if you give several values, each is played)")
    about = "how rewards arrive: clean, late=100 (tasks), missing=0.5, flipped=0.2 (shares); these numbers are the defaults"
    hard.add_argument("--rewards", nargs="+", metavar="HOW", help=about)
    about = "wrong cases in the memory: clean (none), start=0.05, along=0.05 (shares of the tasks; start=500: 500 cases)"
    hard.add_argument("--wrong-cases", nargs="+", metavar="HOW", help=about)
    about = "the share of the SIMULATED solver's successes that a wrong case spoils (default 0.5)"
    hard.add_argument("--misled", nargs="+", type=share, metavar="P", help=about)


def run(options: argparse.Namespace) -> int:
    """Run a suite, or the chosen part of it, and print the results."""
    if options.suite == bench_paper.NAME:
        bench_own.check(options)
        return bench_paper.run(options, bench_own.solver_of)
    if options.suite in _BESIDE:
        return _beside(options)
    bench_own.check(options)
    if bench_own.is_asked_for(options):
        return bench_own.run(options)
    from cascade_memory.evaluation.bench.human import HUMAN
    from cascade_memory.evaluation.bench.methods import KNOWN
    from cascade_memory.evaluation.bench.plan import SUITES
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.setup import under_each
    from cascade_memory.evaluation.bench.stage import declared_of
    from cascade_memory.evaluation.bench.stages import lacking
    from cascade_memory.evaluation.rivals.known import is_rival

    folder = folder_or_bundled(options.data)
    suite = SUITES[options.suite]
    methods = [*KNOWN, *HUMAN]
    if missing := sorted(set(options.tasks or ()) - set(suite.tasks)):
        raise InvalidInput(f"the suite {options.suite!r} has no {missing[0]!r}; it has {', '.join(suite.tasks)}")
    if missing := sorted(method for method in options.methods or () if method not in methods and not is_rival(method)):
        raise InvalidInput(f"there is no {missing[0]!r}; there are {', '.join(methods)}")
    absent = {name: why for name in options.tasks or suite.tasks if (why := lacking(name, folder)) is not None}
    tasks = [name for name in options.tasks or suite.tasks if name not in absent]
    if not tasks:
        raise InvalidInput("; ".join(absent.values()))
    suite = replace(
        _under_conditions(suite, options, tasks),
        tasks=tasks,
        methods=options.methods or suite.methods,
        seeds=suite.seeds if options.seeds is None else options.seeds,
        limit=suite.limit if options.limit is None else options.limit,
        order=FILE if options.order == FILE else "",
    )
    kept, (runs, models) = Rows(options.out), under_each(bench_options.setups_of(options), suite.runs())
    _check_embedder(kept.rows, options.out)
    for one in runs:
        kept.check_declared(asdict(one), declared_of(one))
    check_writable(options.out, "--out", folder=True)
    progress = False if options.json else None
    rows = run_all(runs, folder, options.out, jobs=options.jobs, progress=progress, models=models)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    _print_success(rows)
    _print_absent(absent, folder)
    print(f"rows: {options.out}")
    bench_report.report_if_possible(options.out, options.report)
    return 0


def _beside(options: argparse.Namespace) -> int:
    """Run a suite that is played in a way of its own; refuse what would have no effect there."""
    for one in ("settings", "prompt", "alpha", "lr"):
        if getattr(options, one):
            raise InvalidInput(f"--{one} cannot be used with --suite {options.suite}")
    return _BESIDE[options.suite](options)


def _print_absent(absent: dict[str, str], folder: Path) -> None:
    """Print which streams of the suite were left out, and why: in one sentence if only the package's own data is there."""
    if absent and is_bundled(folder):
        print(
            f"not played: {', '.join(absent)}. No folder of data is named (--data, or CASCADE_DATA), so only what comes with "
            "the package was played. cascade-memory bench data says where to get the others, and how to convert them"
        )
        return
    for why in absent.values():
        print(f"not played: {why}")


def _under_conditions(suite: Suite, options: argparse.Namespace, tasks: Sequence[str]) -> Suite:
    """Return a suite with the conditions that the command line gives; any other condition stays as the suite has it."""
    from cascade_memory.evaluation.bench.conditions import rewards_named, wrong_cases_named
    from cascade_memory.evaluation.bench.plan import MISLED, REUSED

    if options.misled and (reused := [name for name in tasks if name in REUSED]):
        raise InvalidInput(
            f"--misled is a setting of the SIMULATED solver, which does not play {reused[0]!r}: choose other --tasks"
        )
    return replace(
        suite,
        rewards=[rewards_named(one) for one in options.rewards or suite.rewards],
        wrong_cases=[wrong_cases_named(one) for one in options.wrong_cases or suite.wrong_cases],
        misled=[None if one == MISLED else one for one in options.misled or suite.misled],
    )


def _check_embedder(rows: list[dict[str, Any]], out: Path) -> None:
    """Raise an error if the file has rows that were measured with another default embedder than the present one.

    Rows that name an embedder themselves are not checked.
    """
    from cascade_memory.evaluation.bench.stage import best_embedder

    present = best_embedder().identity
    default = (row.get("embedder") for row in rows if '"embedder"' not in str(row.get("models")))
    other = next((embedder for embedder in default if embedder not in (None, present)), None)
    if other is not None:
        raise InvalidInput(f"{out} has rows for the embedder {other!r}, but the embedder is {present!r} now: name another file")


_WHO = {
    "simulated": "SIMULATED solver",
    "reuse": "REUSE agent",
    "reuse-map": "REUSE agent that only maps words",
    "reuse-aside": "REUSE agent on tasks that are set aside for development",
}


def _print_success(rows: list[dict[str, Any]]) -> None:
    """Print the tables of each solver, since figures of different solvers cannot be compared."""
    for solver in dict.fromkeys(row["solver"] for row in rows):
        bench_report.print_success(f"{_WHO[solver]}, no language model", [row for row in rows if row["solver"] == solver])
