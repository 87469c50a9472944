"""Who was paused while it fed Chroma, and was relieved, does not bring back what was forgotten meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from imitated_chroma import imitated
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.engine import mirror_projection
from cascade_memory.engine.mirror_feeder import MirrorFeeder

_OVER = "UPDATE cascade_memory.lease SET expires = clock_timestamp() - interval '1 second' WHERE job = 'feeding Chroma'"


def _feeder(memory: CascadeMemory) -> MirrorFeeder:
    found = engine_of(memory).feeder
    assert found is not None
    return found


def test_a_case_that_was_forgotten_during_the_pause_is_not_put_into_chroma(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    url = new_database()
    put, paused = mirror_projection.put, []
    with imitated() as chroma:
        one = CascadeMemory(url, embedder="hashing", chroma=chroma.url)
        other = CascadeMemory(url.replace("?host=", "?host=/"), embedder="hashing", chroma=chroma.url)
        assert not one.data.shares_engine_with(other)  # they are like two processes

        def late(mirror: Any, rows: Sequence[Any]) -> None:
            if mirror is engine_of(one).parts.mirror and not paused:
                paused.append(rows)
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(_OVER)
                other.forget([case.id for case, _ in rows])
                other.sync()
                assert _feeder(other).owner
            put(mirror, rows)

        monkeypatch.setattr(mirror_projection, "put", late)
        assert _feeder(one).owner
        assert not _feeder(other).owner
        one.add("a secret of hers", "whisper it")
        deadline = time.monotonic() + 20
        while (not paused or _feeder(one).owner) and time.monotonic() < deadline:
            time.sleep(0.05)
        kept = other.add("something else", "say it")
        one.close()
        other.close()
        assert paused
        assert {case for collection in chroma.collections.values() for case in collection.vectors} == {kept}


def test_a_sync_that_loses_its_lease_takes_it_again_and_feeds_everything(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    url = new_database()
    put, times = mirror_projection.put, []

    def slow(mirror: Any, rows: Sequence[Any]) -> None:
        times.append(len(rows))
        if len(times) == 1:  # this process was away for longer than its lease lasts, and nobody has taken over
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_OVER)
        put(mirror, rows)

    with imitated() as chroma, CascadeMemory(url, embedder="hashing", chroma=chroma.url) as memory:
        monkeypatch.setattr(mirror_projection, "put", slow)
        kept = memory.add([(f"task {number}", f"solution {number}") for number in range(5)])
        memory.sync()
        assert len(times) > 1
        assert _feeder(memory).owner
        assert {case for collection in chroma.collections.values() for case in collection.vectors} == {*kept}
