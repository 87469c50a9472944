"""Whoever follows the log misses no line, in whatever order transactions commit."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from cascade_memory.ledger.postgres import connections
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.testing.ledger_material import LedgerMaterial

_LINE = "INSERT INTO change (namespace, kind, ref, id) VALUES (1, 'added', ?, NULL)"


def _two_that_commit_in_the_other_order(ledger: PostgresLedger) -> tuple[list[int], list[int]]:
    """Let one writer take a number, and commit after another writer; return what a reader sees, then and later."""
    numbered, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with ledger.connections.write(durable=False) as connection:
            assert connection.execute(_LINE, (1,)).rowcount == 1
            numbered.set()
            go_on.wait(10)

    def quick() -> None:
        with ledger.connections.write(durable=False) as connection:
            assert connection.execute(_LINE, (2,)).rowcount == 1

    one, other = threading.Thread(target=slow), threading.Thread(target=quick)
    one.start()
    assert numbered.wait(10)
    other.start()
    other.join(1.0)  # it is done, or waits for its turn
    first = ledger.tail(0)
    go_on.set()
    one.join(10)
    other.join(10)
    then = ledger.tail(first[-1].seq if first else 0)
    return [line.ref for line in first], [line.ref for line in then]


def test_a_writer_waits_for_its_turn(new_database: Callable[[], str]):
    ledger = PostgresLedger(new_database())
    seen, then = _two_that_commit_in_the_other_order(ledger)
    ledger.close()
    assert (seen, then) == ([], [1, 2])


def test_without_turns_a_line_would_be_missed(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    """This is what the test above would find if lines were only numbered by a sequence."""
    ledger = PostgresLedger(new_database())
    monkeypatch.setattr(connections, "TURN", "SELECT 1")
    seen, then = _two_that_commit_in_the_other_order(ledger)
    ledger.close()
    assert (seen, then) == ([2], [])


def test_a_reader_beside_eight_writers_misses_nothing(new_database: Callable[[], str]):
    url = new_database()
    ledgers = [PostgresLedger(url) for _ in range(4)]  # as if they were four processes
    ledgers[0].namespace("default", create=True)
    material, done, seen = LedgerMaterial(), threading.Event(), list[int]()

    def write(ledger: PostgresLedger, seed: int) -> None:
        rng = random.Random(seed)
        for number in range(15):
            ledger.cases.add([material._case(query=f"{seed} {number}")])
            time.sleep(rng.random() / 100)

    def read() -> None:
        after, last = 0, False
        while not last:
            last = done.is_set()
            for line in ledgers[0].tail(after):
                seen.append(line.ref)
                after = line.seq

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(ledger, 2 * i + j)) for i, ledger in enumerate(ledgers) for j in (0, 1)]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    done.set()
    reader.join(60)
    assert len(seen) == len(set(seen)) == ledgers[0].cases.count(None) == 8 * 15
    for ledger in ledgers:
        ledger.close()
