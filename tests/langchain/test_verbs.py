"""The object for LangChain has the verbs of the memory behind it."""

from __future__ import annotations

import pytest

from cascade_memory import CascadeMemory as Engine
from cascade_memory.langchain import CascadeMemory


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        yield memory


def test_the_verbs_are_there_without_a_detour(memory: CascadeMemory):
    recall = memory.recall("cool some mug")
    case_id = recall.reward(1.0, solution="put it into the fridge")
    assert memory.cases.search("cool some mug").cases[0].id == case_id
    assert memory.episodes.get(recall.episode_id).reward == 1.0
    assert [case.id for case in memory.cases.all()] == [case_id]
    assert [one.id for one in memory.episodes.all(status="settled")] == [recall.episode_id]
    assert (len(memory), case_id in memory, memory.data.namespaces()) == (1, True, ["default"])
    assert memory.report().episodes == 1
    assert memory.forget(case_id).cases == 1


def test_an_empty_memory_is_true_and_goes_into_a_chain(memory: CascadeMemory):
    assert memory
    assert len(memory) == 0
    assert (memory | (lambda documents: len(documents))).invoke("cool some mug") == 0


def test_a_recall_shows_as_many_cases_as_the_adapter():
    with Engine(embedder="hashing", k=1) as engine:
        engine.add([("cool some mug", "a"), ("cool some mug", "b"), ("cool some mug", "c")])
        memory = CascadeMemory(engine=engine, k=2)
        assert len(memory.recall("cool some mug")) == 2
        assert len(memory.cases.search("cool some mug", k=3)) == 3


async def test_a_conversation_is_rewarded_in_an_event_loop(memory: CascadeMemory):
    recall = await memory.arecall("cool some mug", thread_id="t1")
    case_id = await memory.areward(thread_id="t1", value=1.0, solution="put it into the fridge", metadata={"user": "ann"})
    assert memory.cases.get(case_id).metadata == {"user": "ann"}
    assert memory.episodes.get(recall.episode_id).status == "settled"
