"""Chooses and builds the stage of a run (``stage.Stage``)."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.bfcl_stage import BFCL, bfcl_stage
from cascade_memory.evaluation.bench.hospital_stage import CODED, HOSPITAL, MIMIC, hospital_stage, prepare_hospital
from cascade_memory.evaluation.bench.household_stage import LIMITS, OFFICIAL, household_stage, prepare_household
from cascade_memory.evaluation.bench.plan import REUSED, Run
from cascade_memory.evaluation.bench.science_stage import prepare_science, science_stage
from cascade_memory.evaluation.bench.search_stage import search_stage
from cascade_memory.evaluation.bench.sql_stage import sql_stage, tables_stage
from cascade_memory.evaluation.bench.stage import Folders, Stage, simulated_stage
from cascade_memory.evaluation.environments.bfcl.tasks import lacking as lacking_for_bfcl
from cascade_memory.evaluation.environments.hospital.questions import mimic_files
from cascade_memory.evaluation.search.questions import lacking as lacking_for_search
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

_MADE = {
    "scienceworld": science_stage,
    "spider": sql_stage,
    "llb-db": tables_stage,
    "2wiki": search_stage,
    HOSPITAL: hospital_stage,
    **dict.fromkeys(LIMITS, household_stage),
    **dict.fromkeys(BFCL, bfcl_stage),
}
_ENGINES = {"scienceworld": "scienceworld", **dict.fromkeys((*LIMITS, OFFICIAL), "alfworld")}
WORLDS = (*_ENGINES, "2wiki", *CODED)  # streams in which an agent acts step by step
_PREPARED = {
    "scienceworld": prepare_science,
    HOSPITAL: prepare_hospital,
    **dict.fromkeys((*LIMITS, OFFICIAL), prepare_household),
}


def stage_for(run: Run, folders: Folders) -> Stage:
    """Build a new stage for a run; call ``close`` afterwards, since its solver may hold processes."""
    if run.solver == "simulated":
        return simulated_stage(run, folders)
    if run.task not in _MADE:
        raise InvalidInput(f"there is no {run.solver!r} agent for {run.task!r}; there is one for {', '.join(_MADE)}")
    return _MADE[run.task](run, folders)


def lacking(stream: str, data: Path, *, passages: bool = True) -> str | None:
    """Say what is missing to play a stream; None if nothing is missing.

    ``passages=False`` says that a server does the search of deep search, so that no passages are needed in ``data``.

    >>> lacking("banking77", Path("nowhere"))
    'no data for banking77 in nowhere: cascade-memory bench data says where to get it'
    """
    task = REUSED[stream][0] if stream in REUSED else stream
    if task == "2wiki":
        return lacking_for_search(data, passages=passages)
    if task in BFCL:
        return lacking_for_bfcl()
    if task == MIMIC:
        try:
            mimic_files(data)
        except InvalidInput as error:
            return str(error)
        return None
    if task not in (*LIMITS, OFFICIAL, HOSPITAL) and not CATALOGUE[task].is_there(data):  # those are generated if need be
        return f"no data for {task} in {data}: cascade-memory bench data says where to get it"
    needed = _ENGINES.get(task)
    if needed is not None and find_spec(needed) is None:
        return f'{task} needs the extra "bench": pip install "cascade-memory[bench]"'
    if task == "scienceworld" and shutil.which("java") is None:
        return "scienceworld needs Java: install a JRE, version 11 or later"
    return None


def prepare(run: Run, folders: Folders) -> None:
    """Make once what all runs with the same task and solver share, if anything: games, or the queries of an environment."""
    if run.task in _PREPARED:
        _PREPARED[run.task](run, folders)
