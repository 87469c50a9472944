"""Recalls that nobody waits for any more: cancelled, timed out or interrupted, they leave no open episode."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
from cancelling import MOMENTS, Cancelling, Mine, Moment, nothing_open
from inside import engine_of
from stopped_writer import stopped_writer

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.domain.waiting import Asker, asked_by


@pytest.fixture(params=["hashing", "mine"])
def memory(request: pytest.FixtureRequest) -> Any:
    with CascadeMemory(embedder="hashing" if request.param == "hashing" else Mine(), ranking=Ranking(abstain=False)) as memory:
        memory.add("2 + 3", "5")
        yield memory


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_recall_that_is_cancelled_leaves_no_open_episode(memory: CascadeMemory, moment: Moment):
    cancelling = Cancelling(memory, moment)
    for _ in range(5):
        assert await cancelling.run(lambda: memory.arecall("2 + 3"))
    assert await nothing_open(memory)
    found = await memory.arecall("2 + 3")
    assert [one.id for one in memory.episodes.pending()] == [found.episode_id]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_recall_that_is_cancelled_may_be_made_again_with_its_own_id(memory: CascadeMemory, moment: Moment):
    cancelling = Cancelling(memory, moment)
    for _ in range(3):
        assert await cancelling.run(lambda: memory.arecall("2 + 3", episode_id="mine"))
        assert (await memory.arecall("2 + 3", episode_id="mine")).episode_id == "mine"
    memory.reward("mine", 1.0)
    assert memory.episodes.pending() == []


@pytest.mark.parametrize("how", ["a time limit", "a group", "a scope"])
async def test_whatever_cancels_it(memory: CascadeMemory, how: str):
    cancelling = Cancelling(memory, "writing")

    async def timed() -> None:
        await asyncio.wait_for(memory.arecall("2 + 3"), 20)

    async def grouped() -> None:
        await asyncio.gather(memory.arecall("2 + 3"), asyncio.sleep(20))

    async def scoped() -> None:
        with anyio.fail_after(20):
            await memory.arecall("2 + 3")

    assert await cancelling.run({"a time limit": timed, "a group": grouped, "a scope": scoped}[how])
    assert await nothing_open(memory)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_a_recall_that_is_interrupted_leaves_no_open_episode(memory: CascadeMemory, raised: Any, moment: Moment):
    parts = engine_of(memory).parts
    memory.recall("2 + 3")
    (before,) = memory.episodes.pending()
    name = "embed" if moment == "embedding" else "record"
    whole = parts.embedder.embed if moment == "embedding" else parts.ledger.record

    def interrupted(*given: Any, **more: Any) -> Any:
        if moment == "written":
            whole(*given, **more)
        raise raised

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts.embedder if moment == "embedding" else parts.ledger, name, interrupted)
        with pytest.raises(raised):
            memory.recall("3 + 4")
    if moment != "written":  # an interrupt between the commit and the next statement is not seen
        assert memory.episodes.pending() == [before]


def test_a_recall_that_waits_for_the_ledger_is_dropped_if_its_run_ends(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=0.5) as memory:
        memory.recall("2 + 3")
        memory.episodes.pending()
        asker = Asker(ends_named=True)
        with stopped_writer(tmp_path / "m"):
            with asked_by(asker):
                found = memory.recall("3 + 4", episode_id="of a run")
            assert found.error is None
            asker.leave(undo=True)
        memory.sync()
        assert len(memory.episodes.pending()) == 1
        assert memory.reward("of a run", 1.0) is None, "ignored, as the run is over"


def test_a_recall_that_comes_back_after_its_deadline_is_closed(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder=Mine(), deadline=0.4, ranking=Ranking(abstain=False)) as memory:
        memory.add("2 + 3", "5")
        memory.recall("2 + 3")
        before = [one.id for one in memory.episodes.pending()]
        ledger, record, go_on = engine_of(memory).parts.ledger, engine_of(memory).parts.ledger.record, threading.Event()

        def slow(*given: Any, **more: Any) -> Any:
            assert go_on.wait(20)
            return record(*given, **more)

        ledger.record = slow  # type: ignore[method-assign]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = memory.recall("2 + 3")
        assert found.cases
        assert "its reward will be ignored" in str(found.error)
        go_on.set()
        ends = time.monotonic() + 20
        while memory.stats().censored == 0 and time.monotonic() < ends:
            time.sleep(0.01)
        assert [one.id for one in memory.episodes.pending()] == before
        assert memory.reward(found.episode_id, 1.0) is None
        assert memory.stats().rewards == 0
