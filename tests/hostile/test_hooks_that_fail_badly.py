"""Errors of hooks whose message cannot be read, and runs that fail with a solution that cannot be stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.errors import EmbedderFailed, InvalidInput


class Unsayable(Exception):
    """An error whose message is itself an error, as those of a broken client may be."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


def fails(*_: object) -> Any:
    raise Unsayable


@pytest.mark.parametrize("learn", ["inline", "background"])
@pytest.mark.parametrize("hook", ["matcher", "credit"])
def test_an_error_without_a_message_costs_neither_the_reward_nor_the_folder(hook: str, learn: Any, tmp_path: Path):
    ranking = Ranking(**{hook: fails})
    with CascadeMemory(tmp_path, embedder="hashing", learn=learn, ranking=ranking, chroma=None) as memory:
        memory.add("cool some mug", "fridge")
        recall = memory.recall("cool some mug")
        memory.reward(recall.episode_id, 1.0, solution="freezer")
        memory.sync()
        health = memory.health()
        assert sum(health.failures.values()) > 0
        assert "Unsayable" in str(health.last_error)
    with CascadeMemory(tmp_path) as again:
        assert len(again) == 2


def test_an_embedder_s_error_without_a_message_is_the_embedder_s_failure():
    class Broken:
        identity, dimension = "broken", 4

        def embed(self, texts: list[str]) -> Any:
            if "mug" in texts[0]:
                raise Unsayable
            return np.ones((len(texts), 4))

    with CascadeMemory(embedder=Broken()) as memory, pytest.raises(EmbedderFailed, match="failed with Unsayable"):
        memory.add("cool some mug", "fridge")


UNSTORABLE = ["x" * 1_000_001, 42, {"answer": "a dict"}, "a\x00b"]


@pytest.mark.parametrize("solution", UNSTORABLE, ids=["long", "number", "dict", "zero"])
@pytest.mark.parametrize("error", [KeyError("the agent's"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_run_that_failed_is_over_whatever_its_solution(ram: CascadeMemory, solution: Any, error: BaseException):
    ids = list[str]()

    def run() -> None:
        with ram.episode("cool some mug") as episode:
            ids.append(episode.id)
            episode.solution = solution
            raise error

    with pytest.raises(type(error)):
        run()
    (found,) = (ram.episodes.get(one) for one in ids)
    assert found is not None
    assert found.status == "censored"


@pytest.mark.parametrize("solution", UNSTORABLE, ids=["long", "number", "dict", "zero"])
def test_so_is_one_that_was_cancelled(ram: CascadeMemory, solution: Any):
    ids = list[str]()

    async def run() -> None:
        async with ram.episode("cool some mug") as episode:
            ids.append(episode.id)
            episode.solution = solution
            await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.create_task(run())
        while not ids:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (found,) = (ram.episodes.get(one) for one in ids)
    assert found is not None
    assert found.status == "censored"


@pytest.mark.parametrize("status", ["ok", "error", "cancelled"])
def test_who_ends_a_run_by_hand_is_told_and_may_end_it_better(ram: CascadeMemory, status: Any):
    recall = ram.recall("cool some mug")
    with pytest.raises(InvalidInput, match="a solution is a string"):
        ram.end(recall.episode_id, solution=42, status=status)  # type: ignore[arg-type]
    ram.end(recall.episode_id, solution="fridge", status=status)
    found = ram.episodes.get(recall.episode_id)
    assert found is not None
    assert found.status == ("open" if status == "ok" else "censored")
