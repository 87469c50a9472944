"""The tables of a capability in a database: one that was made without them gets them, by opening it or by a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import psycopg
from with_notes import run_in, with_notes

from cascade_memory import CascadeMemory

_USED = """
import json, sys
from cascade_memory import CascadeMemory
with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline").acting(actor="ann") as memory:
    case = next(iter(memory.cases.all())).id
    memory.notes.pin(case, "only for the old printer")
    pinned = [(note.case_id == case, note.text, note.actor) for note in memory.notes.all()]
    well = all(check.ok for check in memory.data.examine())
    memory.forget(case)
    print(json.dumps([pinned, well, len(memory.notes.all())]))
"""


def test_a_database_that_was_made_before_gets_its_tables(tmp_path: Path, new_database: Callable[[], str]):
    url, project = new_database(), with_notes(tmp_path)
    with CascadeMemory(url, embedder="hashing") as memory:
        memory.add("the printer jams", "pull the tray")
    printed = run_in(project, "-m", "cascade_memory", "data", "migrate", url, "--print-sql")
    assert "CREATE TABLE cascade_memory.note (" in printed.stdout, printed.stderr
    used = run_in(project, "-c", _USED, url)
    assert used.returncode == 0, used.stderr
    assert json.loads(used.stdout) == [[[True, "only for the old printer", "ann"]], True, 0]
    assert "there is nothing to do" in run_in(project, "-m", "cascade_memory", "data", "migrate", url, "--print-sql").stdout


def test_what_the_script_says_makes_them(tmp_path: Path, new_database: Callable[[], str]):
    url, project = new_database(), with_notes(tmp_path)
    with CascadeMemory(url, embedder="hashing") as memory:
        memory.add("the printer jams", "pull the tray")
    script = run_in(project, "-m", "cascade_memory", "data", "migrate", url, "--print-sql").stdout
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())
    assert json.loads(run_in(project, "-c", _USED, url).stdout)[2] == 0
