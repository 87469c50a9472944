"""``cascade-memory bench run --suite warnings``: the worth of warnings, at the action, at the start or as examples."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput, MissingExtra

NAME = "warnings"
_TITLE = "SIMULATED agents, no language model; {}; {} orders of {} tasks; a warned action is done: {}"


def run(options: argparse.Namespace) -> int:
    """Play the runs that have no row in the file yet, print a table for each stream, and draw a picture beside the file."""
    from cascade_memory.evaluation.bench.plan import ASIDE as SET_ASIDE
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.stages import lacking
    from cascade_memory.evaluation.warned.picture import draw
    from cascade_memory.evaluation.warned.plan import ARMS, ASIDE, HEEDS, SEEDS, STREAMS, runs
    from cascade_memory.evaluation.warned.play import play
    from cascade_memory.evaluation.warned.table import HEAD, table

    if missing := sorted(set(options.tasks or ()) - {*STREAMS, *ASIDE}):
        raise InvalidInput(f"the suite {NAME!r} has no {missing[0]!r}; it has {', '.join((*STREAMS, *ASIDE))}")
    arms = options.methods or list(ARMS)
    if missing := sorted(set(arms) - set(ARMS)):
        raise InvalidInput(f"there is no arm {missing[0]!r}; there are {', '.join(ARMS)}")
    if missing := sorted(set(options.heeds) - set(HEEDS)):
        raise InvalidInput(f"there is no way of heeding {missing[0]!r}; there are {', '.join(HEEDS)}")
    folder = folder_of_data(options.data)
    absent = {name: why for name in options.tasks or STREAMS if (why := lacking(name, folder)) is not None}
    tasks = [name for name in options.tasks or STREAMS if name not in absent]
    if not tasks:
        raise InvalidInput("; ".join(absent.values()))
    wanted = list(runs(tasks, SEEDS if options.seeds is None else options.seeds, options.limit, arms, options.heeds))
    known = Rows(options.out)
    known.missing(wanted)
    rows = run_all(wanted, folder, options.out, how=play, jobs=options.jobs, progress=False if options.json else None)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for kind in dict.fromkeys(map(_kind, rows)):
        task, solver, heeds = kind
        its = [row for row in rows if _kind(row) == kind]
        name = f"{task}, tasks that are set aside" if solver == SET_ASIDE else task
        print_table(_TITLE.format(name, len({row["seed"] for row in its}), its[0]["n"], heeds), HEAD, table(its))
    for why in absent.values():
        print(f"not played: {why}")
    print(f"rows: {options.out}")
    try:
        draw(rows, options.out.with_suffix(".png"))
    except MissingExtra as error:
        print(f"no picture: {error}")
    return 0


def _kind(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the stream and the solver of a row, and how its agent heeds warnings: "never" in old rows, which do not say."""
    return str(row["task"]), str(row["solver"]), str(row.get("heeds", "never"))
