"""CascadeMemory as a retriever: LangChain's own suite, and the traps that it does not look for."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumps
from langchain_core.tools import create_retriever_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from scripted import call, model

from cascade_memory import CascadeMemory as Engine
from cascade_memory import Ranking
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.langchain import CascadeMemory, LangChainEmbedder


class SeededMemory(CascadeMemory):
    """A memory with five cases; abstaining is off, so that exactly k documents come."""

    def __init__(self, **options: Any) -> None:
        super().__init__(embedder="hashing", ranking=Ranking(abstain=False), **options)
        self.add([(f"heat cup {i}", f"microwave it {i} times") for i in range(5)])


class TestStandardSuite(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[CascadeMemory]:
        return SeededMemory

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return "heat a cup"


@pytest.fixture
def seeded() -> Any:
    with SeededMemory() as memory:
        yield memory


async def test_k_can_be_chosen_per_call_in_every_way_of_calling(seeded: CascadeMemory):
    assert len(seeded.invoke("heat a cup")) == 1
    assert len(seeded.invoke("heat a cup", k=3)) == 3
    assert len(await seeded.ainvoke("heat a cup", k=2)) == 2
    assert [len(found) for found in seeded.batch(["heat a cup", "cool it"], k=2)] == [2, 2]
    assert [len(found) for found in await seeded.abatch(["heat a cup", "cool it"], k=3)] == [3, 3]
    assert len(seeded.with_config(tags=["x"]).invoke("heat a cup", k=4)) == 4
    assert [len(one) async for one in seeded.astream("heat a cup")] == [1]


def test_a_misspelt_option_is_refused_not_dropped():
    with pytest.raises(TypeError, match="kk"):
        CascadeMemory(embedder="hashing", kk=3)
    with pytest.raises(TypeError, match="did you mean 'reward_fn'"):
        CascadeMemory(embedder="hashing", rewrd_fn=bool)
    with pytest.raises(TypeError, match="callbacks"):
        CascadeMemory(embedder="hashing", callbacks=[])


def test_an_open_engine_is_shared_and_takes_no_further_options():
    with Engine(embedder="hashing", k=2) as engine:
        memory = CascadeMemory(engine=engine)
        assert memory.engine is engine
        assert memory.k == 2
        with pytest.raises(InvalidInput, match="path, reward_fn"):
            CascadeMemory("somewhere", engine=engine, reward_fn=bool)
        assert CascadeMemory(engine=memory).engine is engine, "another retriever's engine will do"
    with pytest.raises(InvalidInput, match="engine must be"):
        CascadeMemory(engine="./memory")  # type: ignore[arg-type]


async def test_a_retrieval_may_be_restricted_by_metadata(make: Callable[..., CascadeMemory]):
    memory = make(k=5)
    memory.add([("heat cup", "a", {"user": "ann"}), ("heat cup", "b", {"user": "bob"})])
    assert [one.metadata["user"] for one in memory.invoke("heat cup", where={"user": "bob"})] == ["bob"]
    assert [one.metadata["user"] for one in await memory.ainvoke("heat cup", where={"user": "ann"}, k=1)] == ["ann"]


@pytest.mark.parametrize("query", ["", "  ", None, {"query": "heat"}, 7, "\x00"])
def test_what_is_no_query_is_refused(seeded: CascadeMemory, query: object):
    with pytest.raises(InvalidInput, match="query"):
        seeded.invoke(query)  # type: ignore[arg-type]
    assert seeded.episodes.pending() == []


def test_abstaining_decides_how_many_documents_come(make: Callable[..., CascadeMemory]):
    memory = make(ranking=Ranking(matcher=None), k=2)
    memory.add([("heat cup 1", "wrong"), ("heat cup 2", "wrong too")])
    for i in range(60):
        recall = memory.engine.recall(f"heat cup {i}")
        memory.reward(recall.episode_id, not recall.cases)
    assert memory.invoke("heat cup 7") == []


def test_metadata_is_plain_json_and_names_case_episode_and_scores(make: Callable[..., CascadeMemory]):
    memory = make()
    case_id = memory.add("heat cup", "microwave it", metadata={"user": "u1", "level": 3})
    (document,) = memory.invoke("heat a cup")
    assert document.id == case_id
    assert document.metadata.keys() >= {
        "case_id",
        "cascade_episode_id",
        "similarity",
        "predicted_success",
        "uncertainty",
        "user",
    }
    assert json.loads(json.dumps(document.metadata, allow_nan=False)) == document.metadata
    assert not [value for value in document.metadata.values() if isinstance(value, np.generic)]
    assert memory.engine.episodes.get(document.metadata["cascade_episode_id"]) is not None


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
def test_a_retriever_tool_works_under_a_checkpointer(tmp_path: Any, seeded: CascadeMemory, response_format: Any):
    tool = create_retriever_tool(seeded, "cases", "Finds solved cases.", response_format=response_format)
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite3")) as saver:
        agent = create_agent(model(call("cases", query="heat a cup"), "done"), [tool], checkpointer=saver)
        agent.invoke({"messages": [("user", "heat")]}, {"configurable": {"thread_id": "t"}, "callbacks": [seeded.callback]})
        stored = agent.get_state({"configurable": {"thread_id": "t"}}).values["messages"][2]
    if response_format == "content_and_artifact":
        assert stored.artifact[0]["metadata"]["case_id"]  # the checkpointer gives plain data back
    (episode,) = seeded.episodes.pending()
    assert episode.answer == "done"
    assert "microwave" not in str(episode.solution), "recalled text is no new experience"


def test_without_any_handler_a_recall_knows_its_thread_and_the_episode_named_in_the_config(seeded: CascadeMemory):
    agent = create_agent(model(call("recall_cases", query="heat a cup"), "done"), [seeded.tool()], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t9"}, "metadata": {"cascade_episode_id": "mine"}}
    agent.invoke({"messages": [("user", "heat")]}, config)
    assert seeded.engine.episodes.get("mine").thread_id == "t9"
    assert seeded.reward(thread_id="t9", value=1.0, solution="heat it") is not None


def test_two_memories_are_never_equal_and_can_be_keys(seeded: CascadeMemory):
    other = CascadeMemory(engine=seeded.engine)
    assert seeded != other
    assert {seeded: 1}[seeded] == 1


def test_a_copy_shares_the_engine_and_pickling_says_what_to_do(seeded: CascadeMemory):
    assert copy.deepcopy(seeded).engine is seeded.engine
    assert copy.copy(seeded).engine is seeded.engine
    with pytest.raises(TypeError, match="open the same folder"):
        pickle.dumps(seeded)


def test_nothing_stored_leaks_into_descriptions(seeded: CascadeMemory):
    assert "microwave" not in repr(seeded)
    assert "microwave" not in str(seeded)
    assert "microwave" not in dumps(seeded)
    assert "microwave" not in dumps(seeded.tool())


def test_any_langchain_embeddings_embed_and_another_model_is_refused(tmp_path: Any):
    with CascadeMemory(tmp_path / "m", embedder=DeterministicFakeEmbedding(size=16)) as memory:
        memory.add("heat cup", "microwave it")
        assert memory.invoke("heat cup")[0].metadata["similarity"] == pytest.approx(1.0)
    with pytest.raises(EncoderMismatch):
        CascadeMemory(tmp_path / "m", embedder=DeterministicFakeEmbedding(size=8))


def test_an_embedder_is_told_apart_by_its_model():
    class Named(DeterministicFakeEmbedding):
        model: str = "large-3"

    assert LangChainEmbedder(Named(size=8)).identity == "langchain:Named:large-3"
    assert LangChainEmbedder(Named(size=8), identity="mine").identity == "mine"


def test_a_reward_names_one_episode(seeded: CascadeMemory):
    with pytest.raises(InvalidInput, match="one of"):
        seeded.reward(value=1.0)
    with pytest.raises(InvalidInput, match="one of"):
        seeded.reward("a", 1.0, run_id="b")
    with pytest.raises(InvalidInput, match="value"):
        seeded.reward("a")
    with pytest.raises(LookupError, match="no episode"):
        seeded.reward(thread_id="never", value=1.0)


async def test_the_asynchronous_reward_takes_the_same_ids(seeded: CascadeMemory):
    episode = (await seeded.ainvoke("heat a cup"))[0].metadata["cascade_episode_id"]
    assert await seeded.areward(run_id=episode, value=True, solution="heat it") is not None
