"""``cascade-memory bench run --suite warnings``, ``attacks`` and ``board-measures``: suites with their own way of playing.

``warnings`` shows the worth of warnings at the action, at the start or as examples; ``attacks`` what malicious actors achieve,
with the measures against them on and off; ``board-measures`` the gain, forgetting, transfer and repair of each memory of the
board.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.plan import Run
    from cascade_memory.evaluation.bench.rows import Row
    from cascade_memory.evaluation.bench.stage import Folders

NAME = "warnings"
_TITLE = "SIMULATED agents, no language model; {}; {} orders of {} tasks; a warned action is done: {}"
ATTACKS, MEASURES = "attacks", "board-measures"
_ATTACKED = "SIMULATED actors and solver, no language model; {}; {} orders; percent"
_MEASURED = "{}: REUSE agents, no language model; {} orders; percent, and points"


def run(options: argparse.Namespace) -> int:
    """Play the runs that have no row in the file yet, print a table for each stream, and draw a picture beside the file."""
    from cascade_memory.evaluation.bench.plan import ASIDE as SET_ASIDE
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.stages import lacking
    from cascade_memory.evaluation.warned.plan import ARMS, ASIDE, HEEDS, SEEDS, STREAMS, runs
    from cascade_memory.evaluation.warned.play import play
    from cascade_memory.evaluation.warned.table import HEAD, draw, table

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


def attacks(options: argparse.Namespace) -> int:
    """Play the attacks that have no row in the file yet, and print a table for each stream."""
    from cascade_memory.evaluation.attacks.play import SEEDS, STREAMS, play, runs
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
