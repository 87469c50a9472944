"""``cascade-memory bench``: does memory help, and which?"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import SUITES

if TYPE_CHECKING:
    from cascade_memory.evaluation.tasks.catalogue import Entry


def data(options: argparse.Namespace) -> int:
    """Say of each task whether its data is there, and of one where it comes from."""
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    folder = _folder(options.data)
    if options.task:
        entry = CATALOGUE.get(options.task)
        if entry is None:
            raise InvalidInput(f"there is no task {options.task!r}; there are {', '.join(CATALOGUE)}")
        chosen = [entry]
    else:
        chosen = list(CATALOGUE.values())
    if options.json:
        print(json.dumps([{**_described(one), "there": one.is_there(folder)} for one in chosen], ensure_ascii=False))
    elif options.task:
        for name, value in _described(chosen[0]).items():
            print(f"{name:10} {value}")
        print(f"{'there':10} {'yes' if chosen[0].is_there(folder) else 'no'}, in {folder}")
    else:
        rows = [[one.name, one.title, "yes" if one.is_there(folder) else "no", one.licence] for one in chosen]
        print_table(f"tasks of the CASCADE paper, in {folder}", ["task", "about", "there", "licence"], rows)
    return 0


def run(options: argparse.Namespace) -> int:
    """Run a suite, or the part of it that was asked for, and print what came out."""
    # Not at the top: every command would pay for it, and a server on stdio is a process per call.
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.summary import table
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    folder = _folder(options.data)
    suite = SUITES[options.suite]
    missing = sorted(set(options.tasks or ()) - set(suite.tasks)) + sorted(set(options.methods or ()) - set(suite.methods))
    if missing:
        raise InvalidInput(
            f"the suite {options.suite!r} has no {missing[0]!r}; it has {', '.join([*suite.tasks, *suite.methods])}"
        )
    tasks = [name for name in options.tasks or suite.tasks if CATALOGUE[name].is_there(folder)]
    absent = [name for name in options.tasks or suite.tasks if name not in tasks]
    if not tasks:
        raise InvalidInput(f"no data for {', '.join(absent)} in {folder}: cascade-memory bench data says where it comes from")
    suite = replace(
        suite,
        tasks=tasks,
        methods=options.methods or suite.methods,
        seeds=suite.seeds if options.seeds is None else options.seeds,
        limit=suite.limit if options.limit is None else options.limit,
    )
    rows = run_all(list(suite.runs()), folder, options.out, jobs=options.jobs, progress=False if options.json else None)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    seeds = "1 seed" if suite.seeds == 1 else f"{suite.seeds} seeds"
    title = f"SIMULATED solver, {seeds}, success in percent; last column: more than NP-CBR over all tasks, 95 % interval"
    print_table(title, ["method", *tasks, "gain"], table(rows))
    if absent:
        print(f"no data for {', '.join(absent)}")
    print(f"rows: {options.out}")
    return 0


def _described(entry: Entry) -> dict[str, str]:
    lines = {
        "task": entry.name,
        "about": entry.title,
        "in paper": entry.paper_name,
        "source": entry.source,
        "licence": entry.licence,
        "files": ", ".join(entry.files) or "none",
    }
    return {**lines, "differs": entry.stand_in} if entry.stand_in else lines


def _folder(given: Path | None) -> Path:
    folder = given or (Path(found) if (found := os.environ.get("CASCADE_DATA")) else None)
    if folder is None:
        raise InvalidInput("name the folder of the data: --data DIR, or the environment variable CASCADE_DATA")
    return folder
