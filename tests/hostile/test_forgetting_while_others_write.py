"""While one is forgotten, others recall and verify: they are not kept waiting, and what they say is not lost."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.domain.records import NewCase, RecallRecord
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.testing.ledger import LedgerContract

TASK, SOLVED = "unlock the door of the shed", "turn the key twice"


class _Rows(LedgerContract):
    """Its material only."""

    def case(self, **values: Any) -> NewCase:
        return self._case(**values)

    def recall(self, *values: Any, **more: Any) -> RecallRecord:
        return self._recall(*values, **more)


def _filled(ledger: SQLiteLedger, recalls: int, every: int) -> list[int]:
    """Fifty cases, and recalls that offered eight of them; the first one in every so many."""
    rows = _Rows()
    assert ledger.namespace("default", create=True) == 1
    ledger.cases.add([rows.case(query=f"q{i}", solution=f"s{i}") for i in range(50)])
    keys = ledger.newest(1, 50).tolist()
    template = rows.recall("e0", candidates=(*keys[1:9],))
    ledger.record(template)
    with ledger.connections.write(durable=False) as connection:
        columns = [
            row[1] for row in connection.execute("PRAGMA table_info(recall)") if row[1] not in ("key", "id", "candidates")
        ]
        row = connection.execute(f"SELECT {', '.join(columns)} FROM recall").fetchone()
        marks = ", ".join("?" * (len(columns) + 2))
        with_it = np.array([keys[0], *keys[1:8]], "<i8").tobytes()
        without = np.array(keys[1:9], "<i8").tobytes()
        connection.executemany(
            f"INSERT INTO recall (id, candidates, {', '.join(columns)}) VALUES ({marks})",
            ((f"r{i}", without if i % every else with_it, *row) for i in range(recalls)),
        )
    return keys


class _Timed:
    def __init__(self, inner: Any, held: list[float]) -> None:
        self._inner, self._held = inner, held

    def __enter__(self) -> Any:
        found = self._inner.__enter__()
        self._since = time.thread_time()  # a busy machine takes its time for others
        return found

    def __exit__(self, *error: Any) -> Any:
        self._held.append(time.thread_time() - self._since)
        return self._inner.__exit__(*error)


@pytest.mark.long
@pytest.mark.parametrize("every", [5_000, 25])
def test_forgetting_one_case_of_fifty_thousand_recalls_lets_others_write(tmp_path: Path, every: int):
    ledger = SQLiteLedger(tmp_path / "ledger.sqlite3")
    keys = _filled(ledger, 50_000, every)
    held: list[float] = []
    write = ledger.connections.write

    def timed(*, durable: bool) -> Any:
        return _Timed(write(durable=durable), held)

    ledger.connections.write = timed  # type: ignore[method-assign]
    assert ledger.forgetting.forget(1, [keys[0]])["cases"] == 1
    with ledger.connections.read() as connection:
        rows = connection.execute("SELECT candidates FROM recall").fetchall()
    assert not any(keys[0] in np.frombuffer(candidates, "<i8") for (candidates,) in rows)
    ledger.close()
    assert max(held) < 0.05, held  # 0.3 s when the scan was part of it


def test_a_recall_that_comes_while_others_are_looked_through_is_not_missed(tmp_path: Path):
    ledger = SQLiteLedger(tmp_path / "ledger.sqlite3")
    keys = _filled(ledger, 5_000, 10)
    rows, stop = _Rows(), threading.Event()

    def recalling() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            ledger.record(rows.recall(f"late {i}", candidates=(keys[0], keys[1])))

    thread = threading.Thread(target=recalling)
    thread.start()
    try:
        ledger.forgetting.forget(1, [keys[0]])
        until = ledger.head()
    finally:
        stop.set()
        thread.join()
    with ledger.connections.read() as connection:
        found = connection.execute("SELECT key, candidates FROM recall WHERE episode IS NOT NULL ORDER BY key").fetchall()
        left = [key for key, candidates in found if keys[0] in np.frombuffer(candidates, "<i8")]
        seen = [key for key, candidates in found if len(candidates) == 8]
    ledger.close()
    assert until
    assert seen, "some were taken out of what came meanwhile"
    assert all(key > max(seen) for key in left), "what stands there now came after it was forgotten"


def test_a_verification_that_comes_at_the_last_moment_keeps_the_case(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    from cascade_memory.ledger import forgetting

    case_id = ram.add(TASK, SOLVED, metadata={"user": "ann"})
    ram.recall(TASK)
    offering = forgetting.offering

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(forgetting, "offering", offering)
        ram.add(TASK, SOLVED, metadata={"user": "bob"})
        return offering(*arguments)

    monkeypatch.setattr(forgetting, "offering", slowly)
    assert ram.forget(where={"user": "ann"}).cases == 0
    assert ram.cases.get(case_id).metadata == {"user": "bob"}
