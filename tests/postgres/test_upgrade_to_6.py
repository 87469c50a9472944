"""A database of version 5, the first one, gets what people decide."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from cascade_memory import CascadeMemory
from cascade_memory.ledger.postgres import migration, steps

_BACK = """DROP TABLE cascade_memory.failure, cascade_memory.checked, cascade_memory.warning_decision;
  DROP TABLE cascade_memory.action; DROP TABLE cascade_memory.judged_attempt;
  ALTER TABLE cascade_memory.cases DROP COLUMN pinned; ALTER TABLE cascade_memory.cases DROP COLUMN hidden;
  ALTER TABLE cascade_memory.cases DROP COLUMN trust; ALTER TABLE cascade_memory.cases DROP COLUMN probation;
  ALTER TABLE cascade_memory.expired DROP COLUMN why; ALTER TABLE cascade_memory.expired DROP COLUMN actor;
  ALTER TABLE cascade_memory.cases DROP COLUMN actor; ALTER TABLE cascade_memory.cases DROP COLUMN channel;
  ALTER TABLE cascade_memory.episode DROP COLUMN actor; ALTER TABLE cascade_memory.episode DROP COLUMN channel;
  ALTER TABLE cascade_memory.outcome DROP COLUMN actor; ALTER TABLE cascade_memory.outcome DROP COLUMN channel;
  ALTER TABLE cascade_memory.addition DROP COLUMN actor; ALTER TABLE cascade_memory.addition DROP COLUMN channel;
  UPDATE cascade_memory.version SET number = 5"""


def test_a_database_of_version_5_is_upgraded(new_database: Callable[[], str]):
    url = new_database()
    with CascadeMemory(url, embedder="hashing") as memory:
        case_id = memory.add("a task", "a solution")
        indexes = _indexes(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BACK)
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        assert memory.acting(actor="ann").cases.hide(case_id)
        assert memory.cases.search("a task").cases == ()
        right = memory.acting(actor="ann").review.correct(case_id, "another solution")
        assert memory.cases.search("a task").cases[0].id == right
        for entry in memory.review.audit():
            memory.acting(actor="bob").review.undo(entry.id)
            if entry.action == "hide":
                break
        assert memory.cases.search("a task").cases[0].id == case_id
    with psycopg.connect(url) as connection:
        assert migration.differences(migration.shape_of(connection)) == []
        assert connection.execute("SELECT number FROM cascade_memory.version").fetchone() == (steps.VERSION,)
    assert _indexes(url) == indexes


def _indexes(url: str) -> list[tuple[str, ...]]:
    with psycopg.connect(url) as connection:
        query = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'cascade_memory' ORDER BY 1"
        return connection.execute(query).fetchall()
