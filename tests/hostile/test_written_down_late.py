"""Recalls that find the ledger locked: written down a little later, in their order, unless they were forgotten meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inside import engine_of, verb_of
from stopped_writer import stopped_writer

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.domain.daemon import Daemon
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.engine import recording
from cascade_memory.errors import EpisodeClosed, StoreBusy, UnknownEpisode
from cascade_memory.ports.encoders import LoadsModel

_DEADLINE, _SLACK = 2.0, 8.0  # a busy machine; what hangs would do so for a minute


class Mine(HashingEmbedder):
    """Somebody's own embedder: a recall runs on a thread of its own."""


@pytest.fixture(params=["ours", "mine"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CascadeMemory]:
    embedder = "hashing" if request.param == "ours" else Mine()
    with CascadeMemory(tmp_path / "m", embedder=embedder, deadline=_DEADLINE, ranking=Ranking(abstain=False)) as memory:
        memory.add([(f"task {i} of kind {i % 4}", f"solution {i % 4}") for i in range(40)], progress=False)
        memory.recall("task 1 of kind 1")
        yield memory


@pytest.mark.parametrize("verb", ["latest", "pending", "episodes.get", "finish", "discard", "forget", "close"])
def test_whoever_asks_for_a_recall_that_waits_gets_it_written_down(memory: CascadeMemory, tmp_path: Path, verb: str):
    def ask() -> object:
        if verb in ("latest", "episodes.get"):
            return verb_of(memory, verb)("conversation" if verb == "latest" else "late") is not None
        if verb == "pending":
            return [one.id for one in memory.episodes.pending()][-1] == "late"
        if verb == "forget":
            return memory.forget(everything=True).episodes == 2 and memory.stats().recalls == 0
        if verb == "close":
            memory.close()
            with CascadeMemory(tmp_path / "m", embedder=engine_of(memory).parts.embedder) as again:
                return again.episodes.get("late") is not None
        return verb_of(memory, verb)("late")

    with stopped_writer(tmp_path / "m"):
        assert memory.recall("task 2 of kind 2", episode_id="late", thread_id="conversation").error is None
        answers: list[object] = []
        asking = threading.Thread(target=lambda: answers.append(ask()))
        asking.start()
        asking.join(0.3)
        assert not answers
    asking.join(30)
    assert answers == [True]


def test_of_many_that_wait_the_last_ones_say_that_their_reward_will_be_ignored(
    memory: CascadeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recording, "MOST_LATE", 5)
    with stopped_writer(tmp_path / "m"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = [memory.recall(f"task {i} of kind {i % 4}") for i in range(8)]
        assert all(len(one.cases) == 1 for one in found)
        assert [one.error is None for one in found] == [True] * 5 + [False] * 3
        assert all("5 recalls wait to be written down" in str(one.error) for one in found[5:])
        assert all("reward will be ignored" in str(one.error) for one in found[5:])
    assert memory.reward(found[5].episode_id, 1.0) is None
    assert memory.reward(found[4].episode_id, 1.0, solution="s")
    assert memory.health().failures == {"record": 3}


@pytest.mark.slow
def test_whoever_asks_too_often_waits_rather_than_lose_a_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording, "MOST_LATE", 40)
    monkeypatch.setattr(recording, "CROWDED", 8)
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=4.0) as memory:
        memory.add("task", "solution")
        memory.recall("task")
        found, waited = [], []

        def ask() -> None:
            for _ in range(60):
                began = time.perf_counter()
                found.append(memory.recall("task"))
                waited.append(time.perf_counter() - began)

        asking = [threading.Thread(target=ask) for _ in range(4)]
        with stopped_writer(tmp_path / "m"):
            for one in asking:
                one.start()
            time.sleep(1.0)
        for one in asking:
            one.join()
        assert [one.error for one in found] == [None] * 240
        assert max(waited) < 4.0 + _SLACK
        assert memory.stats().recalls == 241


async def test_runs_that_end_behind_a_stopped_writer_keep_no_recall_waiting(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=_DEADLINE) as memory:
        memory.add("task", "solution")
        opened = [memory.recall("task") for _ in range(2)]
        with stopped_writer(tmp_path / "m"):
            opened += [memory.recall("task") for _ in range(30)]
            ending = [asyncio.ensure_future(memory.aend(one.episode_id, solution="s")) for one in opened * 2]
            await asyncio.sleep(0.2)
            began = time.perf_counter()
            assert (await memory.arecall("task")).error is None
            assert time.perf_counter() - began < _DEADLINE + _SLACK
            assert not all(one.done() for one in ending)
        await asyncio.gather(*ending)
        assert len(memory.episodes.pending()) == 33


def test_what_another_process_forgot_meanwhile_does_not_come_back(memory: CascadeMemory, tmp_path: Path):
    ledger, free = engine_of(memory).parts.ledger, threading.Event()
    record = ledger.record

    def held_up(*arguments: object, **options: object) -> int:
        if not free.wait(0.1):
            raise StoreBusy("held up by this test, as by a long queue")
        return record(*arguments, **options)

    ledger.record = held_up  # type: ignore[method-assign]
    recall = memory.recall("a private task of ann", metadata={"user": "ann"})
    assert recall.error is None
    command = [
        sys.executable,
        "-m",
        "cascade_memory",
        "data",
        "forget",
        str(tmp_path / "m"),
        "--where",
        '{"user": "ann"}',
        "--purge",
        "--yes",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    free.set()
    memory.sync()
    ledger.record = record  # type: ignore[method-assign]
    with pytest.raises(UnknownEpisode, match="data was forgotten"):
        memory.reward(recall.episode_id, 1.0, solution="s")
    assert memory.health().failures == {"record": 1}
    memory.close()
    for file in (tmp_path / "m").rglob("*"):
        assert not file.is_file() or b"private task" not in file.read_bytes(), file


def test_where_no_thread_can_be_started_a_recall_is_not_written_down_and_comes_in_time(
    memory: CascadeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    start = Daemon.start

    def fails(thread: Daemon) -> None:
        if thread.name == "cascade-memory-late":
            raise RuntimeError("can't start new thread")
        start(thread)

    with stopped_writer(tmp_path / "m"):
        monkeypatch.setattr(Daemon, "start", fails)
        began = time.perf_counter()
        recall = memory.recall("task 1 of kind 1")
        assert time.perf_counter() - began < _DEADLINE + _SLACK
        assert len(recall.cases) == 1
        monkeypatch.undo()
    with pytest.raises(UnknownEpisode, match="could not be written down after all"):
        memory.reward(recall.episode_id, 1.0)
    assert memory.recall("task 1 of kind 1").error is None


def test_a_closed_episode_takes_no_recall_whoever_is_writing(memory: CascadeMemory, tmp_path: Path):
    memory.recall("task", episode_id="closed")
    memory.episodes.discard("closed")
    with stopped_writer(tmp_path / "m"):
        memory.recall("task")
        with pytest.raises(EpisodeClosed):
            memory.recall("task", episode_id="closed")


def test_a_conversation_is_not_kept_waiting_by_others(memory: CascadeMemory, tmp_path: Path):
    memory.recall("task", thread_id="mine", episode_id="e")
    with stopped_writer(tmp_path / "m"):
        memory.recall("task", thread_id="another")
        began = time.perf_counter()
        assert memory.episodes.latest("mine").id == "e"
        assert not memory.episodes.knows("unheard of")
        assert time.perf_counter() - began < _SLACK


def test_a_memory_in_ram_has_a_deadline_too():
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def key(self, solution: object) -> str:
            begun.set()
            assert go_on.wait(20)
            return str(solution)

        def agreement(self, verified: object, stored: list[object]) -> list[float]:
            return [float(verified == one) for one in stored]

    with CascadeMemory(embedder="hashing") as source:
        source.add("task", "solution")
        lines: list[str] = []

        class Into:
            def write(self, text: str) -> None:
                lines.append(text)

        source.data.export(Into(), progress=False)  # type: ignore[arg-type]
    with CascadeMemory(embedder="hashing", ranking=Ranking(matcher=Slow()), deadline=_DEADLINE) as memory:
        memory.recall("task")
        importing = threading.Thread(target=lambda: memory.data.import_("".join(lines).splitlines(), progress=False))
        importing.start()
        assert begun.wait(20)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            memory.recall("task")
        assert time.perf_counter() - began < _DEADLINE + _SLACK
        go_on.set()
        importing.join()
        assert memory.recall("task").error is None


class _Ledger:
    """Refuses what a test tells it to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.episodes = SimpleNamespace(one=lambda episode_id: None)

    def record(self, entry: object, **options: object) -> int:
        if self.error is not None:
            raise self.error
        return 7


def _entry(name: str) -> Any:
    return SimpleNamespace(episode_id=name, thread=None)


def test_whatever_a_log_does_when_it_is_told_the_queue_goes_on():
    def report(step: str, error: Exception) -> None:
        raise RuntimeError("a filter of the host's logging")

    ledger, keys = _Ledger(), list[int]()
    late = recording.Recording(ledger, report)  # type: ignore[arg-type] - all that is asked of it
    for attempt in range(3):
        ledger.error = StoreBusy("busy")
        assert late.write(_entry(f"{attempt}"), 1.0, 0, keys.append) is None
        ledger.error = ValueError("it cannot be written down")
        late.wait_for()
    ledger.error = None
    assert late.write(_entry("last"), 1.0, 0, keys.append) is None
    assert keys == [7]


@pytest.mark.parametrize("busy", [False, True], ids=["at once", "late"])
def test_whatever_comes_of_its_key_a_recall_is_written_down(busy: bool):
    def written(key: int) -> None:
        raise ZeroDivisionError

    ledger, told = _Ledger(), list[str]()
    ledger.error = StoreBusy("busy") if busy else None
    late = recording.Recording(ledger, lambda step, error: told.append(f"{step}: {error!r}"))  # type: ignore[arg-type]
    assert late.write(_entry("e"), 1.0, 0, written) is None
    ledger.error = None
    late.wait_for()
    assert told == ["learn: ZeroDivisionError()"]
    assert not late.failed_to_open("e")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("says", "dropped"),
    [("nothing", False), ("its metadata", True), ("its episode", True), ("a candidate that went", True)],
)
def test_what_was_forgotten_meanwhile_costs_only_recalls_that_it_may_have_meant(
    memory: CascadeMemory, tmp_path: Path, says: str, dropped: bool
):
    ledger, free = engine_of(memory).parts.ledger, threading.Event()
    record = ledger.record

    def held_up(*arguments: object, **options: object) -> int:
        if not free.wait(0.1):
            raise StoreBusy("held up by this test, as by a long queue")
        return record(*arguments, **options)

    other = memory.recall("an episode of somebody else", metadata={"user": "bob"})
    memory.reward(other.episode_id, 1.0, solution="bob's solution")
    ledger.record = held_up  # type: ignore[method-assign]
    recall = memory.recall(
        "task 2 of kind 2",
        metadata={"user": "ann"} if says == "its metadata" else None,
        episode_id="mine" if says == "its episode" else None,
    )
    assert recall.error is None
    gone = f'{{"user": "{"bob" if says != "a candidate that went" else "nobody"}"}}'
    command = [sys.executable, "-m", "cascade_memory", "data", "forget", str(tmp_path / "m"), "--where", gone, "--yes"]
    if says == "a candidate that went":
        command = [*command[:-3], "--case", recall.cases[0].id]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    free.set()
    memory.sync()
    ledger.record = record  # type: ignore[method-assign]
    if dropped:
        with pytest.raises(UnknownEpisode, match="could not be written down after all: data was forgotten"):
            memory.reward(recall.episode_id, 1.0, solution="mine")
    else:
        assert memory.reward(recall.episode_id, 1.0, solution="mine")


def test_a_model_that_loads_slowly_leaves_the_first_recall_as_long_to_wait_for_a_lock():
    """The first recall of an agent loads the model, while the thread that warms the memory up does the same."""

    class Slow(HashingEmbedder, LoadsModel):
        def prepare(self) -> None:
            time.sleep(0.6 * _DEADLINE)  # more than a recall may wait for locks
            writing.start()
            assert written.wait(20)

    def write() -> None:
        with engine_of(memory).parts.ledger.connections.write(durable=False):  # pyright: ignore[reportAttributeAccessIssue]
            written.set()
            time.sleep(0.1)

    written, writing = threading.Event(), threading.Thread(target=write)
    with CascadeMemory(embedder=Slow(), deadline=_DEADLINE) as memory:
        assert memory.recall("task 1").error is None
        writing.join()
