"""A process that forks while its threads write: every child can open the folder, and nobody loses anything by it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ack_writers import WRITERS, ThreadWriters
from forks import Child, say
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.domain.calculating import calculating
from cascade_memory.errors import MemoryForked
from cascade_memory.ledger import forking
from cascade_memory.ledger.connections import Connections

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
_SECONDS = 20.0


def _ended(work: Callable[[int], None]) -> list[str]:
    """Fork, and return what was reported; whoever is not done in time is killed, and says nothing."""
    child, found, deadline = Child(work), [], time.monotonic() + _SECONDS
    while not child.ended() and time.monotonic() < deadline:
        time.sleep(0.005)
    child.kill()
    found = list(child.lines())
    child.close()
    return found


def _work_in(folder: Path, name: str) -> Callable[[int], None]:
    def work(pipe: int) -> None:
        warnings.simplefilter("ignore")
        with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
            case = memory.add(f"{name} task", f"{name} solution")
            recall = memory.recall(f"{name} task")
            assert recall.error is None, recall.error
            memory.reward(recall.episode_id, 1.0, solution=f"{name} solution")
        say(pipe, case)

    return work


@pytest.mark.long
def test_a_child_forked_during_writes_opens_the_folder(tmp_path: Path):
    writers = ThreadWriters(tmp_path / "memory")
    writers.wait_for(acknowledged=WRITERS)
    cases = []
    for i in range(10):
        said = _ended(_work_in(tmp_path / "memory", f"child{i}"))
        assert len(said) == 1, said
        assert not said[0].startswith("!"), said
        cases += said
    said = writers.stop()
    assert said.refused == []
    writers.close()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        for case in [*cases, *said.ids()]:
            assert memory.cases.get(case)
        assert engine_of(memory).parts.ledger.maintenance.integrity() == "ok"


@pytest.mark.slow
def test_a_fork_waits_for_whoever_calculates(tmp_path: Path):
    began, matrix = threading.Event(), np.eye(600)
    with CascadeMemory(tmp_path / "memory", embedder="hashing"):
        beats = [0]

        def calculate() -> None:
            while beats[0] < 200:
                with calculating():
                    matrix @ matrix  # OpenBLAS takes several threads for it, which a fork would end under it
                    beats[0] += 1
                began.set()

        thread = threading.Thread(target=calculate, daemon=True)
        thread.start()
        began.wait(20)
        for _ in range(20):
            assert _ended(lambda pipe: say(pipe, "there")) == ["there"]
        thread.join(30)
        assert beats[0] == 200, "the thread waits for ever for threads that are gone"


def test_a_fork_does_not_wait_for_a_calculation_that_hangs_nor_for_its_own_thread():
    inside, over = threading.Event(), threading.Event()

    def hang() -> None:
        with calculating():
            inside.set()
            over.wait(20)

    thread = threading.Thread(target=hang, daemon=True)
    thread.start()
    inside.wait(20)
    began = time.monotonic()
    assert _ended(lambda pipe: say(pipe, "there")) == ["there"]
    assert 0.9 < time.monotonic() - began < 5
    over.set()
    thread.join(20)
    took = []
    for _ in range(3):  # a busy machine may take its time over one of them
        began = time.monotonic()
        with calculating():
            assert _ended(lambda pipe: say(pipe, "there")) == ["there"]
        took.append(time.monotonic() - began)
    assert min(took) < 0.9


@pytest.mark.slow
def test_a_child_forked_during_recalls_opens_the_folder(tmp_path: Path):
    memory, stop = CascadeMemory(tmp_path / "memory", embedder="hashing"), threading.Event()
    memory.add([(f"task {i}", f"solution {i}") for i in range(100)])

    def read() -> None:
        while not stop.is_set():
            memory.stats()
            memory.cases.get(case)

    case = memory.add("task", "solution")
    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    said = [_ended(_work_in(tmp_path / "memory", f"child{i}")) for i in range(5)]
    stop.set()
    for reader in readers:
        reader.join()
    memory.close()
    assert [len(one) for one in said] == [1] * 5, said
    assert not any(line.startswith("!") for one in said for line in one), said


def _forked(folder: Path) -> None:
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.add(f"task of {os.getpid()}", "solution")


@pytest.mark.slow
def test_workers_of_multiprocessing_that_are_forked_work(tmp_path: Path):
    writers = ThreadWriters(tmp_path / "memory")
    writers.wait_for(acknowledged=WRITERS)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_forked, args=(tmp_path / "memory",)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(_SECONDS)
    assert [worker.exitcode for worker in workers] == [0] * 4
    writers.stop()
    writers.close()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        assert memory.cases.search(f"task of {workers[0].pid}").cases


def test_what_a_child_stored_is_there_when_its_parent_closed_first(tmp_path: Path):
    """A lock of the parent's that the child only believed to hold would let the parent throw the child's log away."""
    folder, go = tmp_path / "memory", tmp_path / "go"
    memory = CascadeMemory(folder, embedder="hashing", learn="inline")
    memory.add("task", "solution")

    def work(pipe: int) -> None:
        with CascadeMemory(folder, embedder="hashing", learn="inline") as mine:
            say(pipe, mine.add("the child's first task", "solution"))
            while not go.exists():
                time.sleep(0.005)
            say(pipe, *mine.add([(f"the child's task {i}", f"solution {i}") for i in range(20)]))
            assert mine.health().ok, mine.health()

    child = Child(work)
    deadline = time.monotonic() + _SECONDS
    lines: list[str] = []
    while not lines and time.monotonic() < deadline:
        lines += child.lines()
        time.sleep(0.005)
    memory.close()
    go.touch()
    while not child.ended() and time.monotonic() < deadline:
        time.sleep(0.005)
    lines += child.lines()
    child.kill()
    child.close()
    assert not any(line.startswith("!") for line in lines), lines
    cases = [case for line in lines for case in line.split()]
    assert len(cases) == 21
    with CascadeMemory(folder, embedder="hashing") as again:
        assert all(again.cases.get(case) for case in cases)


def test_the_parents_memory_is_refused_in_the_child_as_before(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline")

    def work(pipe: int) -> None:
        try:
            memory.add("q", "s")
        except MemoryForked as error:
            say(pipe, "refused", error)

    (line,) = _ended(work)
    assert line.startswith("refused this memory was opened before fork()")
    assert memory.add("q", "s")
    memory.close()


def test_a_writer_that_hangs_does_not_keep_a_fork_waiting_and_the_child_is_told(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline")
    ledger, inside, go = engine_of(memory).parts.ledger, threading.Event(), threading.Event()

    def hang() -> None:
        with ledger.connections.write(durable=True):
            inside.set()
            go.wait(30)

    writer = threading.Thread(target=hang)
    writer.start()
    inside.wait(10)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            CascadeMemory(tmp_path / "memory", embedder="hashing")
        except MemoryForked as error:
            os._exit(7 if "fork at another time" in str(error) else 8)
        os._exit(9)
    took = time.monotonic() - began
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    go.set()
    writer.join()
    assert took < 5
    assert status == 7
    assert memory.add("q", "s")
    memory.close()


def test_threads_of_a_child_may_open_several_folders_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SQLite would lose its locks on a folder that is opened before all inherited connections to it are closed."""
    folders = [tmp_path / str(number) for number in range(4)]
    memories = [CascadeMemory(folder, embedder="hashing") for folder in folders]
    for memory in memories:
        memory.add("task", "solution")
    databases = [engine_of(memory).parts.ledger.connections for memory in memories]
    inherited = {one.real_path(): one.all_connections() for one in databases if isinstance(one, Connections)}
    assert all(inherited.values())

    def work(pipe: int) -> None:
        let_go, early = forking.let_go_of_inherited, list[str]()

        def watched(path: str | None) -> None:
            let_go(path)
            early.extend("early" for one in inherited.get(path, ()) if is_open(one))

        monkeypatch.setattr(forking, "let_go_of_inherited", watched)
        together, opened = threading.Barrier(len(folders)), list[CascadeMemory]()

        def open_one(folder: Path) -> None:
            together.wait()
            opened.append(CascadeMemory(folder, embedder="hashing"))

        threads = [threading.Thread(target=open_one, args=(folder,)) for folder in folders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say(pipe, f"{len(opened)} opened, {len(early)} too early")

    for _ in range(3):
        assert _ended(work) == ["4 opened, 0 too early"]
    for memory in memories:
        memory.close()


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False
