"""``cascade-memory bench run --suite board-measures``: gain, forgetting, transfer and repair of each memory of the board."""

from __future__ import annotations

import argparse
import json

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput

NAME = "board-measures"
_TITLE = "{}: REUSE agents, no language model; {} orders; percent, and points"


def run(options: argparse.Namespace) -> int:
    """Play the runs that have no row in the file yet, and print a table for each pair of streams."""
    from cascade_memory.evaluation.bench.methods import KNOWN
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.stages import lacking
    from cascade_memory.evaluation.rivals.known import is_rival
    from cascade_memory.evaluation.rivals.measures import HEAD, METHODS, SEEDS, STREAMS, THEN, play, runs, table

    tasks = options.tasks or STREAMS
    if missing := sorted(set(tasks) - set(STREAMS)):
        raise InvalidInput(f"the suite {NAME!r} has no {missing[0]!r}; it has {', '.join(map(repr, STREAMS))}")
    if missing := sorted(one for one in options.methods or () if one not in KNOWN and not is_rival(one)):
        raise InvalidInput(f"there is no {missing[0]!r}; there are {', '.join(KNOWN)}")
    folder = folder_of_data(options.data)
    for name in dict.fromkeys(name for task in tasks for name in task.split(THEN)):
        if why := lacking(name, folder):
            raise InvalidInput(why)
    seeds = SEEDS if options.seeds is None else options.seeds
    wanted = list(runs(tasks, options.methods or METHODS, seeds, options.limit))
    Rows(options.out).missing(wanted)
    rows = run_all(wanted, folder, options.out, how=play, jobs=options.jobs, progress=False if options.json else None)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for task in dict.fromkeys(row["task"] for row in rows):
        its = [row for row in rows if row["task"] == task]
        print_table(_TITLE.format(task, len({row["seed"] for row in its})), HEAD, table(its))
    print(f"rows: {options.out}")
    return 0
