"""The object for LlamaIndex has the verbs of the memory behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from held_up import block_leaves_the_loop_free

pytest.importorskip("llama_index.core")

from cascade_memory import CascadeMemory as Engine
from cascade_memory.llama_index import CascadeMemory


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        yield memory


def test_the_verbs_are_there_without_a_detour(memory: CascadeMemory):
    recall = memory.recall("cool some mug")
    case_id = memory.reward(recall.episode_id, 1.0, solution="put it into the fridge")
    assert memory.cases.search("cool some mug").cases[0].id == case_id
    assert memory.episodes.get(recall.episode_id).reward == 1.0
    assert [case.id for case in memory.cases.all()] == [case_id]
    assert [one.id for one in memory.episodes.all()] == [recall.episode_id]
    assert (len(memory), case_id in memory, memory.data.namespaces()) == (1, True, ["default"])
    assert memory.report().episodes == 1
    assert memory.forget(case_id).cases == 1
    assert memory
    assert len(memory) == 0


def test_a_recall_shows_as_many_cases_as_the_adapter():
    with Engine(embedder="hashing", k=1) as engine:
        engine.add([("cool some mug", "a"), ("cool some mug", "b"), ("cool some mug", "c")])
        memory = CascadeMemory(engine=engine, k=2)
        assert len(memory.recall("cool some mug")) == 2
        assert len(memory.cases.search("cool some mug", k=3)) == 3
        assert len(engine.cases.search("cool some mug")) == 1


async def test_the_asynchronous_ones_too(memory: CascadeMemory):
    recall = await memory.arecall("cool some mug")
    case_id = await memory.areward(recall.episode_id, 1.0, solution="put it into the fridge")
    assert case_id in memory
    second = await memory.arecall("heat some egg")
    assert await memory.aend(second.episode_id, solution="microwave") is None
    assert memory.episodes.get(second.episode_id).ended == "ok"


def test_retrievals_inside_a_block_join_its_episode(memory: CascadeMemory):
    memory.add("cool some mug", "put it into the fridge")
    with memory.episode("cool some mug") as episode:
        (node,) = memory.retrieve("cool a mug")
        assert node.metadata["cascade_episode_id"] == episode.id
        episode.solution = "put it into the freezer"
        episode.reward(1.0)
    assert memory.stats().episodes == 1
    assert memory.episodes.get(episode.id).recalls == 2
    (outside,) = memory.retrieve("cool a mug")
    assert outside.metadata["cascade_episode_id"] != episode.id


async def test_the_recall_of_a_block_does_not_hold_up_the_loop(make: Callable[..., CascadeMemory]):
    assert await block_leaves_the_loop_free(make)


async def test_a_block_in_an_event_loop_that_fails_censors_its_episode(memory: CascadeMemory):
    async def fails() -> None:
        async with memory.episode("cool some mug"):
            await memory.aretrieve("cool a mug")
            raise KeyError

    with pytest.raises(KeyError):
        await fails()
    (episode,) = memory.episodes.all()
    assert (episode.status, episode.recalls) == ("censored", 2)
