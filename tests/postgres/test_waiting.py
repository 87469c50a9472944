"""Threads of one process that wait for each other: in which order they go, and that writers do not keep readers waiting."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import psycopg
import pytest
from waiting import wait_until

from cascade_memory.domain.waiting import patience
from cascade_memory.errors import StoreBusy
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ledger.postgres.turns import Turns


def _waits_for_a_turn(url: str) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]  # type: ignore[index]


def test_who_came_first_goes_first():
    room, went, threads = Turns(1), list[int](), list[threading.Thread]()

    def go(number: int) -> None:
        with room.entered(20) as came_in:
            assert came_in
            went.append(number)

    with room.entered(0):
        for number in range(50):
            threads.append(one := threading.Thread(target=go, args=(number,)))
            one.start()
            wait_until(lambda number=number: room.waiting == number + 1)
    for one in threads:
        one.join()
    assert went == list(range(50))
    room = Turns(2)
    with room.entered(0) as first, room.entered(0) as second, room.entered(0) as third:
        assert (first, second, third) == (True, True, False)


def test_who_has_little_time_goes_before_those_who_can_wait_but_not_for_ever():
    room = Turns(1)
    went, threads = list[str](), list[threading.Thread]()

    def go(name: str, seconds: float) -> None:
        with room.entered(seconds) as came_in:
            assert came_in
            went.append(name)

    def begin(name: str, seconds: float) -> None:
        waiting = room.waiting
        threads.append(threading.Thread(target=go, args=(name, seconds)))
        threads[-1].start()
        wait_until(lambda: room.waiting > waiting)

    with room.entered(0):
        begin("a reward", 30.0)
        begin("another reward", 30.0)
        begin("a recall", 1.0)
    for one in threads:
        one.join()
    with room.entered(0):
        begin("a third reward", 30.0)
        time.sleep(1.5)
        begin("a later recall", 1.5)
    for one in threads:
        one.join()
    assert went == ["a recall", "a reward", "another reward", "a third reward", "a later recall"]


def test_who_gives_up_keeps_nobody_from_going():
    room, out = Turns(1), list[bool]()

    def impatient() -> None:
        with room.entered(0.05) as came_in:
            out.append(came_in)

    def hasty() -> None:
        with room.entered(0.002):
            pass

    with room.entered(0):
        threads = [threading.Thread(target=impatient) for _ in range(10)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert out == [False] * 10
    for _ in range(200):  # the turn may come at the very moment at which somebody gives up
        thread = threading.Thread(target=hasty)
        with room.entered(0) as came_in:
            assert came_in
            thread.start()
            time.sleep(0.002)
        thread.join()
    with room.entered(0) as came_in:
        assert came_in


def test_writers_that_wait_for_their_turn_leave_connections_to_readers(new_database: Callable[[], str]):
    url = new_database()
    with contextlib.closing(PostgresLedger(url)) as ledger, contextlib.closing(PostgresLedger(url)) as other:
        written = list[int]()

        def write(number: int) -> None:
            ledger.facts.set(f"fact {number}", "known")
            written.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        with other.connections.write(durable=True) as turn:  # as another process would
            turn.execute("SELECT 1").fetchone()
            for one in threads:
                one.start()
            wait_until(lambda: _waits_for_a_turn(url) >= 2)
            time.sleep(0.3)  # whoever else would wait at the server does so by now
            assert _waits_for_a_turn(url) == 2
            with patience(5.0):
                assert ledger.facts.get("fact 1") is None
            assert written == []
        for one in threads:
            one.join()
        assert sorted(written) == list(range(20))
        assert ledger.facts.get("fact 19") == "known"


def test_a_writer_that_cannot_wait_says_who_is_in_its_way(new_database: Callable[[], str]):
    url = new_database()
    with contextlib.closing(PostgresLedger(url)) as ledger, contextlib.closing(PostgresLedger(url)) as other:
        with other.connections.write(durable=True) as turn:
            turn.execute("SELECT 1").fetchone()
            with patience(0.3), pytest.raises(StoreBusy, match="was busy for too long"):
                ledger.facts.set("a fact", "known")
            began = time.monotonic()
            threads = [threading.Thread(target=ledger.facts.set, args=(f"fact {number}", "known")) for number in range(2)]
            for one in threads:
                one.start()
            wait_until(lambda: _waits_for_a_turn(url) == 2)
            with patience(0.3), pytest.raises(StoreBusy, match="other threads of this process write"):
                ledger.facts.set("a fact", "known")
            assert time.monotonic() - began < 10
        for one in threads:
            one.join()
        assert ledger.facts.get("fact 1") == "known"
