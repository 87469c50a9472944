"""A database of version 7 keeps its content, and learns from failures from now on."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from cascade_memory import CascadeMemory
from cascade_memory.ledger.postgres import migration, steps

_BACK = """DROP TABLE cascade_memory.failure, cascade_memory.checked, cascade_memory.warning_decision;
  UPDATE cascade_memory.version SET number = 7"""


def test_a_database_of_version_7_is_upgraded_to_what_a_new_one_is(new_database: Callable[[], str]):
    url, fresh = new_database(), new_database()
    CascadeMemory(fresh, embedder="hashing").close()
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        memory.recall("a task").reward(1.0, solution="s")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BACK)
        assert migration.differences(migration.shape_of(connection))[:1] == ["the table failure is missing"]
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        assert [case.query for case in memory.cases.all()] == ["a task"]
        assert all(check.ok for check in memory.data.examine())
    assert _structure(url) == _structure(fresh)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT number FROM cascade_memory.version").fetchall() == [(steps.VERSION,)]


def _structure(url: str) -> list[list[tuple[str, ...]]]:
    columns = """SELECT table_name, column_name, data_type, column_default, is_nullable, is_identity, collation_name
                 FROM information_schema.columns WHERE table_schema = 'cascade_memory' ORDER BY 1, 2"""
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'cascade_memory' ORDER BY 1"
    keys = """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
              WHERE connamespace = 'cascade_memory'::regnamespace ORDER BY 1, 2"""
    with psycopg.connect(url) as connection:
        return [connection.execute(query).fetchall() for query in (columns, indexes, keys)]
