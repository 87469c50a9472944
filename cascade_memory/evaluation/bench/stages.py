"""Which stage a run is played on."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.household_stage import LIMITS, household_stage, prepare_household
from cascade_memory.evaluation.bench.plan import REUSED, Run
from cascade_memory.evaluation.bench.science_stage import prepare_science, science_stage
from cascade_memory.evaluation.bench.sql_stage import sql_stage
from cascade_memory.evaluation.bench.stage import Folders, Stage, simulated_stage
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

_MADE = {"scienceworld": science_stage, "spider": sql_stage, **dict.fromkeys(LIMITS, household_stage)}
_ENGINES = {"scienceworld": "scienceworld", **dict.fromkeys(LIMITS, "alfworld")}
WORLDS = tuple(_ENGINES)  # streams in which an agent acts step by step
_PREPARED = {"scienceworld": prepare_science, **dict.fromkeys(LIMITS, prepare_household)}


def stage_for(run: Run, folders: Folders) -> Stage:
    """Return the stage of a run, made anew: its solver may hold processes until ``close`` is called."""
    if run.solver == "simulated":
        return simulated_stage(run, folders)
    if run.task not in _MADE:
        raise InvalidInput(f"there is no {run.solver!r} agent for {run.task!r}; there is one for {', '.join(_MADE)}")
    return _MADE[run.task](run, folders)


def lacking(stream: str, data: Path) -> str | None:
    """Say what a stream cannot be played without; None where nothing is lacking.

    >>> lacking("banking77", Path("nowhere"))
    'no data for banking77 in nowhere: cascade-memory bench data says where it comes from'
    """
    task = REUSED[stream][0] if stream in REUSED else stream
    if task not in LIMITS and not CATALOGUE[task].is_there(data):  # those games are made
        return f"no data for {task} in {data}: cascade-memory bench data says where it comes from"
    needed = _ENGINES.get(task)
    if needed is not None and find_spec(needed) is None:
        return f'{task} needs the extra "bench": pip install "cascade-memory[bench]"'
    if task == "scienceworld" and shutil.which("java") is None:
        return "scienceworld needs Java: install a JRE, version 11 or later"
    return None


def prepare(task: str, folders: Folders) -> None:
    """Make once what all runs on a task share, where anything has to be made: queries of an environment, games."""
    if task in _PREPARED:
        _PREPARED[task](folders)
