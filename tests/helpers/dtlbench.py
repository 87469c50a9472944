"""A folder of data in the published layout of DTLBench, with a few invented rows for each task that is asked and answered."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from cascade_memory.evaluation.model.model_solver import truths_of
from cascade_memory.evaluation.tasks.catalogue import task_named

FIXTURES = Path(__file__).parent.parent / "fixtures" / "dtlbench"
ASKED = (
    *("ddxplus", "mimic-iv-mr", "mimic-iv-msr", "mimic-iv-tlp", "mud", "cmdl"),
    *("banking77", "sentifin", "rca", "lfd", "spider", "bird"),
)

_COAST = """CREATE TABLE keeper (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
CREATE TABLE lighthouse (id INTEGER PRIMARY KEY, name TEXT, height REAL, keeper INTEGER REFERENCES keeper (id));
INSERT INTO keeper VALUES (1, 'Ida', 71), (2, 'Olaf', 34), (3, 'Runa', 63);
INSERT INTO lighthouse VALUES (1, 'Old Tom', 52.5, 1), (2, 'Needle', 38, 2), (3, 'Candle', 41, 3), (4, 'Stump', 12, 2);"""
_BAKERY = """CREATE TABLE baker (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE bread (name TEXT, price REAL, baker INTEGER REFERENCES baker (id));
INSERT INTO baker VALUES (1, 'Nils'), (2, 'Asta');
INSERT INTO bread VALUES ('rye', 3.5, 1), ('wheat', 2.25, 2), ('oat', 4, 2);"""


def published(folder: Path) -> Path:
    """Copy the rows into a folder, and build the databases where the authors' own code looks for them."""
    shutil.copytree(FIXTURES, folder, dirs_exist_ok=True)
    for source in (folder / "spider" / "source", folder / "bird" / "source" / "dev_databases"):
        for name, script in (("coast", _COAST), ("bakery", _BAKERY)):
            (source / name).mkdir(parents=True)
            with contextlib.closing(sqlite3.connect(source / name / f"{name}.sqlite")) as database:
                database.executescript(script)
                database.commit()
    return folder


def right_replies(folder: Path) -> dict[str, str]:
    """Return the right reply to each task with one answer, by the text that asks for it."""
    found: dict[str, str] = {}
    for name in ASKED:
        task: Any = task_named(name)
        items = task.items(folder)
        found |= {task.question(item): task.example(truth) for item, truth in zip(items, truths_of(task, items), strict=True)}
        getattr(task, "close", lambda: None)()
    return found
