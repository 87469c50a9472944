"""A process that is stopped in the middle of a write, and keeps the turn of all writers, does so for a limited time only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from cascade_memory.errors import StoreBusy
from cascade_memory.ledger.database import take_long
from cascade_memory.ledger.postgres import connections
from cascade_memory.ledger.postgres.ledger import PostgresLedger


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_AWAKE", "SET LOCAL idle_in_transaction_session_timeout = '300ms'")


def test_others_write_although_one_is_stopped_and_that_one_is_told(new_database: Callable[[], str]):
    ledger = PostgresLedger(new_database())

    def stopped() -> None:
        with ledger.connections.write(durable=True) as one:
            assert one.execute("INSERT INTO meta VALUES ('mine', '1')").rowcount == 1
            began = time.monotonic()
            ledger.facts.set("another's", "2")  # on another connection, which has to wait for its turn
            assert 0.2 < time.monotonic() - began < 10
            one.execute("SELECT 1").fetchone()

    with pytest.raises(StoreBusy, match="was stopped in the middle of a write"):
        stopped()
    assert (ledger.facts.get("mine"), ledger.facts.get("another's")) == (None, "2")
    ledger.facts.set("mine", "3")
    ledger.close()


def test_a_write_that_says_so_may_rest(new_database: Callable[[], str]):
    ledger = PostgresLedger(new_database())
    other = threading.Thread(target=ledger.facts.set, args=("another's", "2"))
    with ledger.connections.write(durable=True) as one:
        take_long(one)
        assert one.execute("INSERT INTO meta VALUES ('mine', '1')").rowcount == 1
        other.start()
        time.sleep(1.0)
    other.join(10)
    assert (ledger.facts.get("mine"), ledger.facts.get("another's")) == ("1", "2")
    ledger.close()
