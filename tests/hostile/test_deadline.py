"""Whatever hangs around a recall: it comes back within its deadline, with cases where they can be had."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest
from inside import engine_of
from stopped_writer import stopped_writer
from waiting import wait_until

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.domain.recall import Recall
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import EmbedderFailed, InvalidInput
from cascade_memory.memory import threads

_DEADLINE = 2.0
_SLACK = 8.0  # a busy machine; what hangs would do so for a minute
_SHORT = 0.1
_RECALLS = 30


class Mine(HashingEmbedder):
    """Somebody's own embedder: it may do anything."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.go_on.set()
        self.raises: BaseException | None = None

    def embed(self, texts):
        self.go_on.wait(60)
        if self.raises is not None:
            raise self.raises
        return super().embed(texts)


@pytest.fixture(params=["ours", "mine"])
def folder_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CascadeMemory]:
    embedder = "hashing" if request.param == "ours" else Mine()
    with CascadeMemory(tmp_path / "m", embedder=embedder, deadline=_DEADLINE, ranking=Ranking(abstain=False)) as memory:
        memory.add([(f"task {i} of kind {i % 4}", f"solution {i % 4}") for i in range(40)], progress=False)
        memory.recall("task 1 of kind 1")
        yield memory


def _recalls(memory: CascadeMemory, many: int = _RECALLS) -> tuple[list[Recall], list[float]]:
    found, waited = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for i in range(many):
            began = time.perf_counter()
            found.append(memory.recall(f"task {i} of kind {i % 4}"))
            waited.append(time.perf_counter() - began)
    return found, waited


def _threads() -> int:
    """Count the threads on which recalls are worked on, or wait for the next one."""
    return sum(one.name.startswith("cascade-memory-recall") for one in threading.enumerate())


def _error_free(memory: CascadeMemory) -> bool:
    found, _ = _recalls(memory, 1)
    return found[0].error is None and len(found[0].cases) == 1


# -- the ledger's lock ---------------------------------------------------------------------------------------------------


def test_behind_a_stopped_writer_cases_come_and_are_written_down_when_it_goes_on(folder_memory: CascadeMemory, tmp_path: Path):
    with stopped_writer(tmp_path / "m"):
        found, waited = _recalls(folder_memory)
        assert all(one.error is None and len(one.cases) == 1 for one in found)
        assert max(waited) < _DEADLINE + _SLACK
        assert sum(waited) < _DEADLINE + _SLACK  # after the first one nobody waits
    for one in found:
        folder_memory.reward(one.episode_id, 1.0, solution=one.cases[0].solution)
    assert folder_memory.health().failures == {}
    assert folder_memory.stats().rewards == _RECALLS
    assert folder_memory.stats().recalls == _RECALLS + 1
    assert _error_free(folder_memory)


def test_behind_a_stopped_writer_a_new_namespace_keeps_nobody_else_waiting(folder_memory: CascadeMemory, tmp_path: Path):
    with stopped_writer(tmp_path / "m"):
        began = time.perf_counter()
        with pytest.warns(RuntimeWarning, match="going on without cases"):
            assert folder_memory.acting(namespace="new").recall("a task").cases == ()
        assert time.perf_counter() - began < _DEADLINE + _SLACK


def test_a_folder_opens_behind_a_stopped_writer(tmp_path: Path):
    options = {"embedder": "hashing", "deadline": _DEADLINE}
    with CascadeMemory(tmp_path / "m", **options) as memory:
        memory.add("task 1 of kind 1", "solution 1")
    with stopped_writer(tmp_path / "m"):
        began = time.perf_counter()
        memory = CascadeMemory(tmp_path / "m", **options)
        assert memory.recall("task 1 of kind 1").cases[0].solution == "solution 1"
        assert time.perf_counter() - began < 5
    memory.close()


def test_an_import_from_a_slow_pipe_holds_nobody_up(folder_memory: CascadeMemory, tmp_path: Path):
    folder_memory.data.export(tmp_path / "all", progress=False)
    lines = [line.replace("task ", "other task ") for line in (tmp_path / "all").read_text().splitlines()]
    halfway, go_on = threading.Event(), threading.Event()

    def slowly() -> Iterator[str]:
        for number, line in enumerate(lines):
            if number == 5:
                halfway.set()
                go_on.wait(60)
            yield line

    importing = threading.Thread(target=lambda: folder_memory.data.import_(slowly(), progress=False))
    importing.start()
    halfway.wait(30)
    found, waited = _recalls(folder_memory)
    added = folder_memory.add("added meanwhile", "at once")
    go_on.set()
    importing.join(60)
    assert all(one.error is None and len(one.cases) == 1 for one in found)
    assert max(waited) < _DEADLINE + _SLACK
    assert folder_memory.cases.get(added).solution == "at once"


def test_a_pipe_that_breaks_in_the_middle_leaves_nothing(ram: CascadeMemory, tmp_path: Path):
    ram.add([(f"task {i}", "s") for i in range(10)], progress=False)
    ram.data.export(tmp_path / "all", progress=False)
    lines = (tmp_path / "all").read_text().splitlines()

    def broken() -> Iterator[str]:
        yield from lines[:5]
        raise OSError("the pipe broke")

    with CascadeMemory(embedder="hashing") as other:
        with pytest.raises(OSError, match="pipe broke"):
            other.data.import_(broken(), progress=False)
        assert other.stats().cases == 0
        assert other.data.import_(lines, progress=False) > 0


# -- the embedder --------------------------------------------------------------------------------------------------------


def test_a_hanging_embedder_is_waited_for_until_the_deadline_and_soon_not_at_all():
    embedder = Mine()
    with CascadeMemory(embedder=embedder, deadline=_SHORT, ranking=Ranking(abstain=False)) as memory:
        memory.add("task 1 of kind 1", "solution 1")
        wait_until(lambda: _error_free(memory))
        embedder.go_on.clear()
        threads, failed = _threads(), memory.health().failures.get("recall", 0)
        found, waited = _recalls(memory, 40)
        assert all(one.cases == () and one.error for one in found)
        assert "the embedder 'hashing-1:384' did not answer within the deadline of 0.1 s" in str(found[0].error)
        assert max(waited) < _SHORT + _SLACK
        assert "earlier recalls hang" in str(found[-1].error)
        assert min(waited[-8:]) < _SHORT  # so many hang that no more are begun
        assert memory.health().failures == {"recall": failed + 40}
        assert _threads() < threads + 40  # 32 that hang, not 40 and their helpers
        embedder.go_on.set()
        wait_until(lambda: not engine_of(memory).attempts.note_stuck())
        wait_until(lambda: _error_free(memory))
        assert memory.stats().episodes == 2  # nothing that nobody waited for was written down


def test_a_recall_that_nobody_waited_for_shows_nothing_under_the_id_that_was_given():
    embedder = Mine()
    with CascadeMemory(embedder=embedder, deadline=_SHORT, ranking=Ranking(abstain=False)) as memory:
        memory.add("task", "solution")
        wait_until(lambda: _error_free(memory))
        embedder.go_on.clear()
        with pytest.warns(RuntimeWarning, match="deadline"):
            memory.recall("task", episode_id="run-1")
        embedder.go_on.set()
        wait_until(lambda: not engine_of(memory).attempts.note_stuck())
        assert memory.episodes.get("run-1") is None
        assert memory.reward("run-1", 1.0) is None


def test_without_a_deadline_a_recall_takes_what_it_takes_on_its_own_thread():
    embedder, seen = Mine(), []
    embedder.embed = lambda texts: seen.append(threading.current_thread()) or HashingEmbedder().embed(texts)  # type: ignore[method-assign]
    with CascadeMemory(embedder=embedder, deadline=None) as memory:
        memory.recall("task")
    assert set(seen) == {threading.current_thread()}


def test_only_the_embedder_is_called_on_another_thread(caplog: pytest.LogCaptureFixture):
    embedder, seen = Mine(), []
    embedder.embed = lambda texts: seen.append(threading.get_ident()) or HashingEmbedder().embed(texts)  # type: ignore[method-assign]
    with CascadeMemory(embedder=embedder) as memory, caplog.at_level(logging.INFO, "cascade_memory.engine.engine"):
        memory.recall("task")
        seen.clear()
        caplog.clear()
        memory.recall("another task")
        assert len(seen) == 1
        assert seen[0] != threading.get_ident()
        assert [record.thread for record in caplog.records] == [threading.get_ident()]


@pytest.mark.parametrize("error", [ConnectionError("away"), RecursionError("deep"), InvalidInput("mine"), AssertionError()])
def test_whatever_an_embedder_raises_is_its_own_failure(error: Exception):
    embedder = Mine()
    with CascadeMemory(embedder=embedder) as memory:
        episode = memory.recall("another task").episode_id
        memory.add("task", "solution")
        embedder.raises = error
        with pytest.warns(RuntimeWarning, match="going on without cases"):
            recall = memory.recall("task")
        assert type(error).__name__ in str(recall.error)
        with pytest.raises(EmbedderFailed, match=type(error).__name__):
            memory.add("task 2", "solution")
        assert memory.reward(episode, 1.0, solution="what needs no embedder")
        assert memory.reward(recall.episode_id, 1.0) is None


def test_the_embedder_sees_the_callers_context_and_may_recall_itself():
    name: ContextVar[str] = ContextVar("name")
    seen: list[str] = []
    embedder, inner = Mine(), CascadeMemory(embedder="hashing")

    def embed(texts):
        seen.append(name.get("nobody"))
        inner.recall(texts[0])
        return HashingEmbedder().embed(texts)

    embedder.embed = embed  # type: ignore[method-assign]
    with CascadeMemory(embedder=embedder) as memory:
        name.set("caller")
        assert memory.recall("task").error is None
    assert seen == ["caller"]
    assert inner.stats().recalls == 1


def test_threads_are_used_again(folder_memory: CascadeMemory):
    _recalls(folder_memory, 5)
    before = _threads()
    _recalls(folder_memory)
    assert _threads() <= before + 1  # on a busy machine, one may not have gone to rest yet when the next recall comes


def test_an_interpreter_ends_although_an_embedder_hangs():
    program = """
import time, warnings
warnings.simplefilter("ignore")
from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
class Hangs(HashingEmbedder):
    def embed(self, texts): time.sleep(600)
memory = CascadeMemory(embedder=Hangs(), deadline=0.1)
print(memory.recall("task").error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "did not answer" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own(tmp_path: Path):
    with CascadeMemory(embedder=Mine(), deadline=5.0) as memory:
        memory.recall("task")  # a thread rests now, which the child does not have
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = b"failed"
            with contextlib.suppress(BaseException):
                child = CascadeMemory(embedder=Mine(), deadline=5.0)
                child.add("task", "solution")
                status = child.recall("task").cases[0].solution.encode()
            os.write(writing, status)
            os._exit(0)
        os.close(writing)
        assert os.read(reading, 100) == b"solution"
        os.close(reading)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("wrong", [0, -1, "soon", float("nan"), float("inf"), True])
def test_a_deadline_is_a_time(wrong: object):
    with pytest.raises(InvalidInput, match="deadline"):
        CascadeMemory(embedder="hashing", deadline=wrong)  # type: ignore[arg-type]


# -- what rewards ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["matcher", "reward function"])
async def test_what_a_reward_waits_for_no_recall_waits_for(what: str, tmp_path: Path):
    go_on = threading.Event()

    def hangs(*_: object) -> float:
        go_on.wait(60)
        return 1.0

    ranking = Ranking(abstain=False, matcher=hangs if what == "matcher" else "exact")
    judge = hangs if what == "reward function" else None
    memory = CascadeMemory(tmp_path / "m", embedder=Mine(), deadline=_DEADLINE, ranking=ranking, reward_fn=judge)
    memory.add([(f"task {i} of kind {i % 4}", f"solution {i % 4}") for i in range(8)], progress=False)
    opened = [memory.recall(f"task {i} of kind {i % 4}") for i in range(40)]
    if what == "matcher":
        hanging = [asyncio.ensure_future(memory.areward(one.episode_id, 1.0, solution="s")) for one in opened]
    else:
        hanging = [asyncio.ensure_future(memory.aend(one.episode_id, solution="s")) for one in opened]
    await asyncio.sleep(0.3)
    waited = []
    for i in range(_RECALLS):
        began = time.perf_counter()
        recall = await memory.arecall(f"task {i} of kind {i % 4}")
        waited.append(time.perf_counter() - began)
        assert recall.error is None
        assert len(recall.cases) == 1
    assert max(waited) < _DEADLINE + _SLACK
    assert not any(one.done() for one in hanging)
    go_on.set()
    await asyncio.gather(*hanging)
    memory.close()


async def test_hanging_recalls_leave_the_hosts_own_executor_alone():
    embedder = Mine()
    with CascadeMemory(embedder=embedder, deadline=_DEADLINE) as memory:
        memory.recall("task")
        embedder.go_on.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            began = time.perf_counter()
            recalls = [asyncio.ensure_future(memory.arecall("task")) for _ in range(100)]
            await asyncio.sleep(0.05)
            assert await asyncio.get_running_loop().run_in_executor(None, lambda: "the host's") == "the host's"
            assert time.perf_counter() - began < _DEADLINE
            found = await asyncio.gather(*recalls)
        assert all(one.error for one in found)
        # Those who had to wait for their turn need not wait again.
        assert time.perf_counter() - began < 2 * _DEADLINE + 2 * _SLACK
        embedder.go_on.set()


def test_a_loop_that_was_closed_over_a_call_harms_nobody():
    begun, go_on, left = threading.Event(), threading.Event(), []

    def work() -> str:
        begun.set()
        go_on.wait(10)
        return "late"

    async def leave() -> None:
        left.append(asyncio.ensure_future(threads.in_thread(work)))
        await asyncio.sleep(0)
        begun.wait(10)

    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(threads.in_thread(lambda: "next")) == "next"


async def test_a_call_that_is_cancelled_goes_on_and_its_thread_is_used_again():
    over = threading.Event()
    task = asyncio.ensure_future(threads.in_thread(lambda: time.sleep(0.2) or over.set()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over.wait(10)
    assert await threads.in_thread(lambda: json.dumps([1])) == "[1]"
