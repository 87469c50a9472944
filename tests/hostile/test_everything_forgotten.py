"""A namespace that is emptied under its writers: what is acknowledged is there, unless the emptying came after it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest
from ack_writers import ProcessWriters, ThreadWriters
from inside import engine_of, state_of

from cascade_memory import CascadeMemory
from cascade_memory.domain.records import CASE_ADDED, FORGOTTEN


@pytest.mark.long
@pytest.mark.parametrize("kind", [ThreadWriters, ProcessWriters], ids=["threads", "processes"])
def test_what_is_acknowledged_stands_after_the_last_emptying_or_went_with_one(kind, tmp_path: Path):
    folder = tmp_path / "memory"
    writers = kind(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        writers.wait_until_all_write()
        memory = writers.memory if kind is ThreadWriters else CascadeMemory(folder, embedder="hashing")
        spans = []
        for _ in range(5):
            began = time.monotonic()
            memory.forget(everything=True)
            spans.append((began, time.monotonic()))
            time.sleep(0.3)
        writers.wait_for(len(writers.said.acknowledged) + 8)
        said = writers.stop()
    if kind is ProcessWriters:
        memory.close()
    writers.close()
    with CascadeMemory(folder, embedder="hashing", learn="inline") as again:
        ledger = engine_of(again).parts.ledger
        log = ledger.tail(0, 1_000_000)
        last = max(change.seq for change in log if change.kind == FORGOTTEN and not change.ref)
        with ledger.connections.read() as connection:
            there = dict(connection.execute("SELECT id, key FROM cases").fetchall())
        added = {change.ref: change.seq for change in log if change.kind == CASE_ADDED}
        # In the order of the log: everything that was added after the last emptying, and nothing else.
        assert {key for key, seq in added.items() if seq > last} == set(there.values())
        # As its caller saw it: what was begun after an emptying had returned is there.
        for began, case in said.acknowledged:
            if began > spans[-1][1]:
                assert case in there
        # And nothing is there that nobody was told of, but for what an emptying made an error of.
        assert set(there) <= said.ids()
        assert state_of(again).index.count == len(there)
        assert all(check.ok for check in again.data.examine())
    for _, sentence in said.refused:  # an episode that went between its recall and its reward
        assert "UnknownEpisode" in sentence, sentence
