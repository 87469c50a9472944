"""Ctrl-C, an alarm or a soft limit leaves nothing locked and nothing half done, also while somebody keeps the traceback."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import types
import zipfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import verb_of

from cascade_memory import CascadeMemory
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.domain.interruptible import interruptible, take
from cascade_memory.domain.waiting import Flag, patience, patience_ends
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.snapshots import Snapshot
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.stores import chroma

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms")

# An impatient user. On Python 3.10, an interrupt within microseconds of another one may end the block that lets go of a lock.
_AGAIN = 3e-5 if sys.version_info >= (3, 11) else 2e-2

_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=2)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO event (at, kind, payload) VALUES (0, 'test', '{}')")
print("writing", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


@contextlib.contextmanager
def _writer(folder: Path) -> Generator[Callable[[], object], None, None]:
    """Let another process write; it must be able to. It goes on until it is told to end, or the block does."""
    command = [sys.executable, "-c", _WRITER, str(folder / "ledger.sqlite3")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        yield writer.stdin.close
        writer.stdin.close()
    assert writer.returncode == 0


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Do something in another thread, and fail if it hangs."""
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=lambda: done.put(work()), daemon=True).start()
    try:
        return done.get(timeout=seconds)
    except queue.Empty:
        pytest.fail("it hangs")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT raise, whatever a shell in the background or another test has made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_another_process_writes_locks_nobody_out(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing") as memory:
        memory.add("cool some mug", "put it into the fridge")
        with _writer(tmp_path) as end:

            def press() -> None:
                os.kill(os.getpid(), signal.SIGINT)
                end()

            presses = threading.Timer(0.5, press)  # by then, ``add`` waits
            presses.start()
            with pytest.raises(KeyboardInterrupt) as kept:  # its traceback stays until the end
                memory.add("heat some egg", "put it into the microwave")
        assert len(memory) == 1
        with _writer(tmp_path):  # other processes are not locked out
            pass
        _within(10, lambda: memory.add("heat some cup", "put it into the microwave"))
        assert memory.reward(memory.recall("heat a cup").episode_id, 1.0, solution="as before")
        assert len(memory) == 3
    assert kept.value.__traceback__ is not None


@pytest.fixture
def alarms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object], float], BaseException | None]]:
    """Let an alarm interrupt a call that repeats itself; return what was raised."""
    monkeypatch.setattr(sys, "unraisablehook", list[object]().append)  # of a second interrupt, while a block is being closed

    def interrupted(work: Callable[[], object], seconds: float) -> BaseException | None:
        found: BaseException | None = None
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while True:
                work()
        except KeyboardInterrupt as error:
            found = error
        except SystemError as error:  # two interrupts met in one call of the interpreter, which reports the second one so
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            found = error
        signal.setitimer(signal.ITIMER_REAL, 0)
        return found

    def ring(number: int, frame: types.FrameType | None) -> None:
        # The next alarm is set last, and one that rings within this function raises nothing: on a slow machine, a timer that
        # repeats itself would ring here again and again, and what was raised here would come out where nobody catches it.
        if frame is None or not _is_under(frame, interrupted.__code__):
            return
        within = frame.f_code not in (interrupted.__code__, ring.__code__, _is_under.__code__)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        if within:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield interrupted
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.collect()  # while the hook is there: a file that was interrupted in its constructor fails when it is collected


def _is_under(frame: types.FrameType | None, code: types.CodeType) -> bool:
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _moments(alarms: Any, work: Callable[[], object], intact: Callable[[], bool], count: int = 1_000) -> int:
    """Return after how many interrupts something was not as it should be, while their tracebacks are kept."""
    rng, kept, wrong = random.Random(1), list[object](), 0
    for _ in range(count):
        kept.append(alarms(work, 1e-5 + 1e-4 * rng.random()))
        wrong += not intact()
    return wrong


def test_a_block_is_left_wherever_an_interrupt_comes(alarms: Any):
    lock = threading.Lock()
    connection = sqlite3.connect(":memory:", isolation_level=None)

    @interruptible
    def transaction() -> Generator[None, None, None]:
        held: list[bool] = []
        try:
            take(lock, held, 1.0)
            try:
                connection.execute("BEGIN")
                yield
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.rollback()
        finally:
            if True in held:
                lock.release()

    def work() -> None:
        with transaction():
            connection.execute("SELECT 1").fetchone()

    assert _moments(alarms, work, lambda: not lock.locked() and not connection.in_transaction) == 0
    connection.close()


@pytest.mark.parametrize("place", ["ram", "disk"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_what_a_traceback_keeps_half_read_is_in_nobodys_way(place: str, kind: type[BaseException], tmp_path: Path):
    ledger = SQLiteLedger(tmp_path / "ledger.sqlite3" if place == "disk" else None)
    kept: list[object] = []
    for block in (ledger.connections.read, lambda: ledger.connections.write(durable=True)):
        with contextlib.suppress(kind), block() as connection:
            kept.append(rows := connection.execute("SELECT 1 FROM sqlite_master"))
            rows.fetchone()
            raise kind
    if place == "disk":
        with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)) as other:
            other.execute("INSERT INTO meta VALUES ('there', 'x')")
    ledger.facts.set("here", "y")
    assert ledger.facts.get("there") == ("x" if place == "disk" else None)
    assert ledger.connections.vacuum() == ""
    ledger.close()
    del kept


def test_a_block_in_a_cycle_of_references_is_left_by_the_collector(monkeypatch: pytest.MonkeyPatch):
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)

    @interruptible
    def block() -> Iterator[None]:
        try:
            yield
        finally:
            said.append("left")

    def holder(cycle: list[object]) -> Iterator[None]:
        with block():
            yield

    cycle: list[object] = []
    holding = holder(cycle)
    next(holding)
    cycle += [cycle, holding]
    del cycle, holding
    gc.collect()
    assert said == ["left"]


def test_a_block_is_left_though_somebody_keeps_every_frame():
    frames: list[types.FrameType] = []

    def profiler(frame: types.FrameType, event: str, _: object) -> None:
        frames.append(frame)
        if event == "call" and frame.f_code.co_name == "_leave":
            raise KeyboardInterrupt

    before = sys.getprofile()
    try:
        sys.setprofile(profiler)
        with patience(0.0):
            pass
    except KeyboardInterrupt:
        sys.setprofile(before)
    assert patience_ends() is None
    assert "made" in {frame.f_code.co_name for frame in frames}


def test_patience_does_not_outlive_its_block(alarms: Any):
    def work() -> None:
        with patience(0.0):
            patience_ends()

    assert _moments(alarms, work, lambda: patience_ends() is None) == 0


def test_a_flag_can_be_set_after_an_interrupt_in_setting_it(alarms: Any):
    flag = Flag()

    def work() -> None:
        flag.set()
        flag.is_set = False

    def intact() -> bool:
        flag.set()
        is_set, flag.is_set = flag.wait(0.0), False
        return is_set

    assert _moments(alarms, work, intact) == 0


def test_a_lock_of_the_folder_is_not_kept_by_an_interrupt(alarms: Any, tmp_path: Path):
    lock, other = OwnerLock(tmp_path / "lock"), OwnerLock(tmp_path / "lock")

    def work() -> None:
        lock.try_acquire()
        lock.release()

    def intact() -> bool:
        lock.release()
        is_free = other.try_acquire()
        other.release()
        return is_free

    assert _moments(alarms, work, intact) == 0


def test_no_unfinished_snapshot_is_left_by_an_interrupt(alarms: Any, tmp_path: Path):
    store = SnapshotStore(tmp_path)
    snapshot = Snapshot(namespace=1, seq=1, known=1, policy="p", encoder="e", state={"weights": np.ones(4)})

    def intact() -> bool:
        left = list(tmp_path.glob("*.part"))
        for file in left:
            file.unlink()
        return not left

    assert _moments(alarms, lambda: store.save(snapshot), intact, 60) == 0


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_within_an_archive_stays_an_interrupt(
    interrupt: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened, kept = zipfile.ZipFile.open, list[object]()

    def interrupted(archive: zipfile.ZipFile, *args: Any, **named: Any) -> Any:
        kept.append(opened(archive, *args, **named))  # as a traceback does: so the archive cannot be closed
        raise interrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", list[object]().append)  # of what is kept, which Python 3.13 closes too late
    with pytest.raises(interrupt):
        SnapshotStore(tmp_path).save(Snapshot(namespace=1, seq=1, known=1, policy="p", encoder="e", state={"a": np.ones(4)}))
    assert not list(tmp_path.iterdir())
    kept.clear()
    gc.collect()


def test_the_block_of_a_context_manager_deals_with_errors_as_usual():
    seen: list[str] = []

    @interruptible
    def block(*, deals: bool) -> Generator[int, None, None]:
        try:
            yield 1
        except ValueError as error:
            seen.append(str(error))
            if not deals:
                raise
        seen.append("left")

    with block(deals=True) as one:
        raise ValueError("dealt with")
    assert (one, seen) == (1, ["dealt with", "left"])
    with pytest.raises(ValueError, match="goes on") as raised, block(deals=False):
        raise ValueError("goes on")
    assert raised.value.__context__ is None
    with pytest.raises(StopIteration), block(deals=False):
        raise StopIteration
    with contextlib.suppress(KeyError), block(deals=False):
        raise KeyError
    assert seen == ["dealt with", "left", "goes on"]


def test_closing_again_goes_on_where_an_interrupt_has_ended_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    memory = CascadeMemory(tmp_path, embedder="hashing")
    memory.add("cool some mug", "put it into the fridge")
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            memory.close()
    memory.close()
    assert not list(tmp_path.glob("*-wal")), "the ledger is closed"
    with CascadeMemory(tmp_path, embedder="hashing") as again:
        again.sync()
        assert (len(again), again.health().chroma) == (1, "clean")


@pytest.mark.parametrize("verb", ["sync", "close"])
def test_chroma_is_fed_again_after_an_interrupt_while_it_was_opened_or_closed(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    memory = CascadeMemory(tmp_path, embedder="hashing")
    memory.add("cool some mug", "put it into the fridge")
    if verb == "close":
        memory.sync()
    with monkeypatch.context() as patched:
        patched.setattr(chroma, "make_private", interrupt)
        with pytest.raises(KeyboardInterrupt):
            verb_of(memory, verb)()
    memory.close()
    with CascadeMemory(tmp_path, embedder="hashing") as again:
        again.add("heat some egg", "put it into the microwave")
        again.sync()
        again.data.rebuild()
        assert again.health().chroma_lag == 0
        assert all(check.ok for check in again.data.examine())
