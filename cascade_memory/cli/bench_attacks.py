"""``cascade-memory bench run --suite attacks``: what malicious actors achieve, with the measures against them on and off."""

from __future__ import annotations

import argparse
import json

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput

NAME = "attacks"
_TITLE = "SIMULATED actors and solver, no language model; {}; {} orders; percent"


def run(options: argparse.Namespace) -> int:
    """Play the runs that have no row in the file yet, and print a table for each stream."""
    from cascade_memory.evaluation.attacks.plan import SEEDS, STREAMS, runs
    from cascade_memory.evaluation.attacks.play import play
    from cascade_memory.evaluation.attacks.table import HEAD, table
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all

    if missing := sorted(set(options.tasks or ()) - set(STREAMS)):
        raise InvalidInput(f"the suite {NAME!r} has no {missing[0]!r}; it has {', '.join(map(repr, STREAMS))}")
    wanted = list(runs(options.tasks or STREAMS, SEEDS if options.seeds is None else options.seeds, options.limit))
    known = Rows(options.out)
    known.missing(wanted)
    folder = folder_of_data(options.data)
    rows = run_all(wanted, folder, options.out, how=play, jobs=options.jobs, progress=False if options.json else None)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for task in dict.fromkeys(row["task"] for row in rows):
        its = [row for row in rows if row["task"] == task]
        print_table(_TITLE.format(task, len({row["seed"] for row in its})), HEAD, table(its))
    print(f"rows: {options.out}")
    return 0
