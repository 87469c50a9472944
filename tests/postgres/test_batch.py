"""Statements that wait for others keep their order and their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from cascade_memory.errors import StoreError
from cascade_memory.ledger.postgres.batch import Batch, Latest
from cascade_memory.ledger.postgres.explained import Clash, Unmet
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ledger.postgres.pool import configured

_NEW = "INSERT INTO addition (namespace, cases_key, at, source, metadata) VALUES (?, ?, 0, 'human', '{}') RETURNING key"


@pytest.fixture
def batch(new_database: Callable[[], str]) -> Iterator[Batch]:
    url = new_database()
    ledger = PostgresLedger(url)
    ledger.namespace("default", create=True)
    ledger.close()
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        configured(connection)
        batch = Batch(connection, "the database of a test")
        batch.add("SET session_replication_role = replica")  # no case is needed
        yield batch


def test_nothing_is_sent_before_a_result_is_needed(batch: Batch):
    batch.send()
    before = batch.trips
    (key,) = batch.execute(_NEW, (1, 7)).fetchone()
    rows = batch.execute("SELECT cases_key FROM addition WHERE key = ?", (key,)).fetchall()
    batch.execute("UPDATE addition SET cases_key = 8 WHERE key = ?", (key,))
    assert batch.trips == before
    assert list(rows) == [(7,)]  # as it was when it was asked for
    assert batch.execute("SELECT cases_key FROM addition").fetchone() == (8,)
    assert batch.trips == before + 2


def test_a_key_that_is_not_the_latest_any_more_keeps_its_number(batch: Batch):
    keys = [batch.execute(_NEW, (1, number)).fetchone()[0] for number in range(3)]
    assert isinstance(keys[0], Latest)
    for number, key in enumerate(keys):
        batch.execute("UPDATE addition SET cases_key = ? WHERE key = ?", (10 + number, key))
    found = batch.execute("SELECT key, cases_key FROM addition ORDER BY key").fetchall()
    assert list(found) == [(int(key), 10 + number) for number, key in enumerate(keys)]
    assert int(keys[1]) == int(keys[1])


def test_a_clash_and_an_unmet_condition_are_told_apart(batch: Batch):
    batch.require("1 = ?", (1,))
    batch.send()
    batch.require("1 = ?", (2,))
    with pytest.raises(Unmet):
        batch.send()
    batch.execute("INSERT INTO meta VALUES ('a', 'b')")
    batch.execute("INSERT INTO meta VALUES ('a', 'c')")
    with pytest.raises(Clash):
        batch.send()
    with pytest.raises(StoreError):
        batch.execute("SELECT nonsense").fetchone()
    assert batch.execute("SELECT 1").fetchone() == (1,)  # nothing of before is left


@pytest.mark.parametrize("text", ["'; DROP TABLE meta; --", "100 % \\ \" ' ?", "%s", "$$", "\u202e\U0001f600", "a\\"])
def test_text_is_text(batch: Batch, text: str):
    batch.execute("INSERT INTO meta VALUES (?, ?)", (text, text))
    assert batch.execute("SELECT value FROM meta WHERE key = ?", (text,)).fetchone() == (text,)
