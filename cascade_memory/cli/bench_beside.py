"""``cascade-memory bench run --suite attacks`` and ``--suite board-measures``: suites whose runs are played in their own way.

``attacks`` shows what malicious actors achieve, with the measures against them on and off; ``board-measures`` the gain,
forgetting, transfer and repair of each memory of the board.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.plan import Run
    from cascade_memory.evaluation.bench.rows import Row
    from cascade_memory.evaluation.bench.stage import Folders

ATTACKS, MEASURES = "attacks", "board-measures"
_ATTACKED = "SIMULATED actors and solver, no language model; {}; {} orders; percent"
_MEASURED = "{}: REUSE agents, no language model; {} orders; percent, and points"


def attacks(options: argparse.Namespace) -> int:
    """Play the attacks that have no row in the file yet, and print a table for each stream."""
    from cascade_memory.evaluation.attacks.plan import SEEDS, STREAMS, runs
    from cascade_memory.evaluation.attacks.play import play
    from cascade_memory.evaluation.attacks.table import HEAD, table

    tasks = _tasks(options, ATTACKS, STREAMS)
    wanted = list(runs(tasks, SEEDS if options.seeds is None else options.seeds, options.limit))
    return _played(options, wanted, None, play, lambda rows: (_ATTACKED, HEAD, table(rows)))


def measures(options: argparse.Namespace) -> int:
    """Play the runs of the measures that have no row in the file yet, and print a table for each pair of streams."""
    from cascade_memory.evaluation.bench.methods import KNOWN
    from cascade_memory.evaluation.bench.stages import lacking
    from cascade_memory.evaluation.rivals.known import is_rival
    from cascade_memory.evaluation.rivals.measures import HEAD, METHODS, SEEDS, STREAMS, THEN, play, runs, table

    tasks = _tasks(options, MEASURES, STREAMS)
    if missing := sorted(one for one in options.methods or () if one not in KNOWN and not is_rival(one)):
        raise InvalidInput(f"there is no {missing[0]!r}; there are {', '.join(KNOWN)}")
    folder = folder_of_data(options.data)
    for name in dict.fromkeys(name for task in tasks for name in task.split(THEN)):
        if why := lacking(name, folder):
            raise InvalidInput(why)
    seeds = SEEDS if options.seeds is None else options.seeds
    wanted = list(runs(tasks, options.methods or METHODS, seeds, options.limit))
    return _played(options, wanted, folder, play, lambda rows: (_MEASURED, HEAD, table(rows)))


def _tasks(options: argparse.Namespace, name: str, streams: Sequence[str]) -> Sequence[str]:
    if missing := sorted(set(options.tasks or ()) - set(streams)):
        raise InvalidInput(f"the suite {name!r} has no {missing[0]!r}; it has {', '.join(map(repr, streams))}")
    return options.tasks or streams


def _played(
    options: argparse.Namespace,
    wanted: list[Run],
    folder: Path | None,
    play: Callable[[Run, Folders], Row],
    shown: Callable[[list[Row]], tuple[str, Sequence[str], list[list[str]]]],
) -> int:
    """Play the runs without a row, and print what ``shown`` makes of each stream's rows: a title, a head and lines."""
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all

    Rows(options.out).missing(wanted)  # refuses a file with other rows before any data is looked for
    folder = folder_of_data(options.data) if folder is None else folder
    rows = run_all(wanted, folder, options.out, how=play, jobs=options.jobs, progress=False if options.json else None)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for task in dict.fromkeys(row["task"] for row in rows):
        its = [row for row in rows if row["task"] == task]
        title, head, lines = shown(its)
        print_table(title.format(task, len({row["seed"] for row in its})), head, lines)
    print(f"rows: {options.out}")
    return 0
