"""A table that is only declared is created, checked, mended, exported, forgotten and copied like all others."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.ledger.declaring import TEXT, Column, Table
from cascade_memory.ledger.numbering import KEYS
from cascade_memory.ledger.schema import STATEMENTS, TABLES

_PROGRAM = Path(__file__).parents[1] / "helpers" / "one_more_table.py"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    command = [sys.executable, _PROGRAM, tmp_path_factory.mktemp("memory")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_its_rows_go_with_the_episode_that_they_belong_to(said: dict[str, Any]):
    (first, second), rows = said["written"]
    assert rows == [[1, first, "one", 1.0, "one", "more"], [2, second, "two", 1.0, "two", "more"]]
    assert said["after an episode was forgotten"] == rows[1:]


def test_its_rows_are_in_an_export_and_go_with_their_namespace(said: dict[str, Any]):
    _, rows = said["written"]
    assert said["imported"] == [[*row[:5], None] for row in rows]  # what is declared without a name in records stays here
    assert said["after all was forgotten"] == [[], {}]


def test_the_doctor_finds_and_mends_what_is_wrong_with_its_rows(said: dict[str, Any]):
    assert said["a wrong value"] == [["mark 3: weight must be a number from 0 to 1, not 7.0"], True]
    assert said["a time ahead"] == [["1 time in the future: the clock was set back"], True]
    assert said["rows of nothing"] == [["1 in of_mark"], True]


def test_a_ledger_with_another_structure_is_refused(said: dict[str, Any]):
    assert "it lacks the index mark_said" in said["another structure"]


def test_each_table_comes_after_those_that_its_rows_belong_to():
    known: set[str] = set()
    for table in TABLES:
        named = {owner for column in table.columns for owner in column.of}
        named |= {column.refers.split("(")[0] for column in table.columns if column.refers}
        assert named <= known, table.name
        known.add(table.name)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sqlite_reads_the_declarations_as_they_are_meant(table: Table):
    columns = 'SELECT name, type, "notnull" OR pk, pk FROM pragma_table_info(?)'
    references = """SELECT "from", "table" || '(' || "to" || ')', on_delete FROM pragma_foreign_key_list(?)"""
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in STATEMENTS:
            new.execute(statement)
        found = new.execute(columns, (table.name,)).fetchall()
        refers = set(new.execute(references, (table.name,)).fetchall())
        counts = "SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE name = ?"
        (numbered,) = new.execute(counts, (table.name,)).fetchone()
    needed = [one.name in table.keys or not one.optional for one in table.columns]
    assert [row[:3] for row in found] == [(one.name, one.kind, need) for one, need in zip(table.columns, needed, strict=True)]
    assert tuple(name for name, _, _, place in sorted(found, key=lambda row: row[3]) if place) == table.keys
    assert refers == {(one.name, one.refers, "CASCADE" if one.cascades else "NO ACTION") for one in table.columns if one.refers}
    assert (table.name in KEYS) == bool(numbered)


def test_a_last_column_can_be_dropped_whatever_the_comments_say():
    table = Table("t", (Column("a", TEXT, about="one, two"), Column("b", TEXT, optional=True, about="three, or four")))
    assert not re.search(r"--[^\n]*,", table.statements[0])
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(table.statements[0])
        connection.execute("ALTER TABLE t DROP COLUMN b")
