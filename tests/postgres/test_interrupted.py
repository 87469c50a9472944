"""Interrupts at every step of what a thread takes and gives back. Who makes them keeps the exceptions with their tracebacks."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import psycopg
import pytest
from waiting import wait_until

from cascade_memory.ledger.filters import FieldValue
from cascade_memory.ledger.postgres import connections
from cascade_memory.ledger.postgres.dialect import encoded
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ledger.postgres.turns import Turns

_OURS = "datname = current_database() AND application_name = 'cascade-memory'"
_OPEN = f"SELECT pid, state, query FROM pg_stat_activity WHERE {_OURS} AND state <> 'idle'"
_LOCKS = "SELECT pid, mode FROM pg_locks WHERE locktype = 'advisory'"


class Interrupted(BaseException):
    """As Ctrl-C is."""


class Interrupt:
    """Raises after so many calls and beginnings of functions on this thread; then, if asked to, again after so many more."""

    def __init__(self, *steps: int) -> None:
        self._steps = list(steps)
        self.came = 0

    def __call__(self, _: FrameType, event: str, __: object) -> None:
        if event in ("call", "c_return") and self._steps:
            self._steps[0] -= 1
            if not self._steps[0]:
                self._steps.pop(0)
                self.came += 1
                raise Interrupted


def interrupted(call: Callable[[], object], *steps: int) -> tuple[int, BaseException | None]:
    """Call, and interrupt it; return how often an interrupt came, and the error."""
    interrupt, error = Interrupt(*steps), None
    sys.setprofile(interrupt)
    try:
        call()
    except BaseException as caught:  # it is kept, as notebooks do
        error = caught
    sys.setprofile(None)
    return interrupt.came, error


def interrupted_everywhere(call: Callable[[], object], every: int = 1) -> Iterator[BaseException | None]:
    """Call as often as it has steps, and interrupt it at one after the other."""
    step = 1
    while True:
        came, error = interrupted(call, step)
        if not came:
            return
        yield error
        step += every


# An interrupt may come in a callback of the garbage collector, of which Python only tells.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_a_turn_is_free_again_wherever_an_interrupt_comes():
    kept, room = list[BaseException | None](), Turns(1)

    def come_and_go() -> None:
        with room.entered(0.0) as came_in:
            assert came_in

    def is_free() -> bool:
        with room.entered(0.0) as came_in:
            return came_in

    for error in interrupted_everywhere(come_and_go):
        kept.append(error)
        wait_until(is_free, 10)
    assert len(kept) > 20
    assert room.waiting == 0


def test_whoever_waits_gets_a_turn_wherever_the_one_before_is_interrupted():
    kept, room, step, came = list[BaseException | None](), Turns(1), 0, 1

    def wait() -> None:
        with room.entered(20.0) as came_in:
            assert came_in

    def go(other: threading.Thread) -> None:
        with room.entered(5.0):
            sys.setprofile(None)
            other.start()
            wait_until(lambda: room.waiting == 1, 10)
            sys.setprofile(interrupt)

    while came:
        step += 1
        interrupt, other = Interrupt(step), threading.Thread(target=wait)
        try:
            go(other)
        except Interrupted as error:
            kept.append(error)
        sys.setprofile(None)
        came = interrupt.came
        other.join(10)
        assert not other.is_alive()
    assert len(kept) > 10


def _nothing_is_held(look: psycopg.Connection[object]) -> bool:
    return not look.execute(_OPEN).fetchall() and not look.execute(_LOCKS).fetchall()


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def look(url: str) -> Iterator[psycopg.Connection[object]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _read(ledger: PostgresLedger) -> None:
    ledger.facts.get("a fact")


def _write(ledger: PostgresLedger) -> None:
    ledger.facts.set("a fact", "known")


def _look_at_one_state(ledger: PostgresLedger) -> None:
    with ledger.connections.snapshot() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


_OLD = pytest.mark.xfail(sys.version_info < (3, 11), reason="not so at every step on Python 3.10", strict=False)


@_OLD
@pytest.mark.parametrize("verb", [_read, _write, _look_at_one_state])
def test_no_connection_is_lost_or_left_in_a_transaction(
    verb: Callable[[PostgresLedger], None], url: str, look: psycopg.Connection[object]
):
    kept = list[BaseException | None]()
    with contextlib.closing(PostgresLedger(url)) as ledger:
        for number, error in enumerate(interrupted_everywhere(lambda: verb(ledger), every=3)):
            kept.append(error)
            wait_until(lambda: _nothing_is_held(look), 10, where=f"at step {1 + 3 * number}")
            ledger.facts.set("another fact", f"{number}")
            assert ledger.facts.get("another fact") == f"{number}"
        for first in range(5, 3 * len(kept), 37):  # a second one, while the first one is being dealt with
            for then in (1, 2, 5, 12, 31):
                kept.append(interrupted(lambda: verb(ledger), first, then)[1])
                wait_until(lambda: _nothing_is_held(look), 10, where=f"at step {first}, and {then} later")
        threads = [threading.Thread(target=_write, args=(ledger,)) for _ in range(20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(10)
        assert not any(one.is_alive() for one in threads)
        assert look.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {_OURS}").fetchone()[0] <= 8  # type: ignore[index]
    if sys.version_info < (3, 11):  # there, a traceback keeps a connection that was being made
        kept.clear()
        gc.collect()
    wait_until(lambda: look.execute(f"SELECT 1 FROM pg_stat_activity WHERE {_OURS}").fetchone() is None, 10)


@_OLD
def test_a_connection_that_was_interrupted_while_it_was_made_is_not_used(url: str, look: psycopg.Connection[object]):
    kept, came = list[object](), 1
    with contextlib.closing(PostgresLedger(url)) as ledger:

        def connect() -> None:
            with ledger.connections.read() as connection:
                kept.append(connection.execute("SELECT 1").fetchone())

        for step in range(1, 10_000, 9):
            look.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS}")
            wait_until(lambda: look.execute(f"SELECT 1 FROM pg_stat_activity WHERE {_OURS}").fetchone() is None, 10)
            came, error = interrupted(connect, step)
            kept.append(error)
            with ledger.connections.read() as connection:
                value = connection.execute("SELECT ?", (FieldValue("ann"),)).fetchone()[0]
            assert value == encoded("ann"), f"at step {step}"
            assert look.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {_OURS}").fetchone()[0] <= 2, f"at step {step}"  # type: ignore[index]
            if not came:
                break
        assert not came


def test_a_thread_is_not_held_to_a_lease_whose_block_was_interrupted(url: str):
    kept = list[BaseException | None]()
    with contextlib.closing(PostgresLedger(url)) as ledger:
        lease, other = ledger.lease("tidying", 1), ledger.lease("tidying", 1)

        def work() -> None:
            assert lease.try_acquire()
            with lease.held():
                pass
            lease.release()

        for number, error in enumerate(interrupted_everywhere(work, every=5)):
            kept.append(error)
            assert lease.try_acquire()  # whoever asked for it gets it again, whatever the server was told before
            lease.release()
            assert other.try_acquire()
            ledger.facts.set("a fact", f"{number}")  # needs no lease
            other.release()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Interrupted])
def test_a_statement_that_waits_is_stopped_on_the_server(
    kind: type[BaseException], url: str, look: psycopg.Connection[object], monkeypatch: pytest.MonkeyPatch
):
    def ring(*_: object) -> None:
        raise kind

    before = signal.signal(signal.SIGALRM, ring)
    monkeypatch.setattr(connections, "_AWAKE", "SET LOCAL idle_in_transaction_session_timeout = '60s'")
    try:
        with contextlib.closing(PostgresLedger(url)) as ledger, contextlib.closing(PostgresLedger(url)) as other:
            with other.connections.write(durable=True) as turn:
                turn.execute("SELECT 1").fetchone()
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with pytest.raises(kind) as kept:
                    ledger.facts.set("a fact", "of a write that was interrupted")
                wait_until(lambda: not look.execute(f"{_LOCKS} AND NOT granted").fetchall(), 10)
            assert kept.value.__traceback__ is not None
            assert ledger.facts.get("a fact") is None
            ledger.facts.set("a fact", "known")
            assert other.facts.get("a fact") == "known"
    finally:
        signal.signal(signal.SIGALRM, before)
