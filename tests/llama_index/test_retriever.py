"""The memory as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading

import pytest
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseComponent, MetadataMode, QueryBundle
from scripted_llm import ScriptedLLM

from cascade_memory import CascadeMemory as Engine
from cascade_memory import Ranking
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.llama_index import CascadeMemory, LlamaIndexEmbedder


def test_a_case_comes_back_as_a_node_that_can_be_rewarded(memory):
    node = memory.retrieve("what is 2 + 4?")[0]
    assert node.get_content() == "Task: what is 2 + 3?\nSolution:\nadd the numbers: 5"
    assert node.metadata["case_id"] == node.node.node_id
    assert 0 < node.metadata["similarity"] < 1
    assert isinstance(node.score, float)
    memory.reward(node.metadata["cascade_episode_id"], 1.0, solution="6")
    assert memory.engine.stats().cases == 2


def test_what_is_for_the_program_is_not_shown_to_the_model(memory):
    memory.add("what is 7 + 7?", "14", metadata={"user": "u1"})
    node = memory.retrieve("what is 7 + 7?")[0]
    assert node.metadata["user"] == "u1"
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert node.get_content(mode) == "Task: what is 7 + 7?\nSolution:\n14"


async def test_asynchronous_calls_by_position_and_by_name(memory):
    by_position = await memory.aretrieve("what is 2 + 4?")
    by_name = await memory._aretrieve(query_bundle=QueryBundle("what is 2 + 4?"))
    assert [one.node.node_id for one in by_position] == [one.node.node_id for one in by_name]
    assert len(by_name) == 1


async def test_the_loop_goes_on_while_an_embedder_works(make):
    ticked, ticks = threading.Event(), 0
    ticked.set()  # while the memory is made

    class Slow(MockEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            assert ticked.wait(20)
            return super()._get_text_embedding(text)

    memory = make(embedder=Slow(embed_dim=8))

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1
            if ticks == 10:
                ticked.set()

    ticked.clear()
    ticking = asyncio.create_task(tick())
    await memory.aretrieve("what is 2 + 4?")
    ticking.cancel()
    assert ticks >= 10


def test_k_and_where(make):
    memory = make(k=2, where={"user": "u1"}, ranking=Ranking(abstain=False))
    memory.add([(f"what is {i} + 1?", str(i + 1), {"user": f"u{i % 2}"}) for i in range(6)])
    found = memory.retrieve("what is 3 + 1?")
    assert len(found) == 2
    assert {one.metadata["user"] for one in found} == {"u1"}


def test_a_shared_engine_is_seen_from_both_sides():
    with Engine(embedder="hashing") as engine:
        memory = CascadeMemory(engine=engine, k=3)
        memory.add("what is 2 + 3?", "5")
        assert engine.stats().cases == 1
        assert CascadeMemory(engine=memory).engine is engine
        with pytest.raises(InvalidInput, match="open already: pass namespace"):
            CascadeMemory(engine=engine, namespace="other")
    with pytest.raises(TypeError, match="did you mean 'namespace'"):
        CascadeMemory(namespaces="x")


def test_any_llama_index_embedding_will_do_and_is_told_from_another(make, tmp_path):
    first = make(tmp_path, embedder=MockEmbedding(embed_dim=8))
    first.add("what is 2 + 3?", "5")
    assert "llama-index:MockEmbedding" in first.stats().embedder
    assert len(first.retrieve("what is 2 + 3?")) == 1
    first.close()
    with pytest.raises(EncoderMismatch):
        make(tmp_path, embedder=LlamaIndexEmbedder(MockEmbedding(embed_dim=8), identity="another"))


def test_copies_are_the_same_memory_and_pickles_are_refused(memory):
    assert copy.deepcopy(memory) is memory
    assert copy.copy(memory) is memory
    with pytest.raises(TypeError, match="open the same folder"):
        pickle.dumps(memory)
    assert repr(memory).startswith("llama_index.CascadeMemory(in RAM")
    assert "<table" in memory._repr_html_()


def test_a_query_engine_is_a_run_of_its_own(memory):
    memory.install()
    llm = ScriptedLLM(script=["It is 5."])
    answer = RetrieverQueryEngine.from_args(memory, llm=llm).query("what is 2 + 3, please?")
    assert str(answer) == "It is 5."
    assert "add the numbers: 5" in str(llm.seen[0])
    memory.sync()
    episode = memory.engine.episodes.get(answer.source_nodes[0].metadata["cascade_episode_id"])
    assert (episode.status, episode.reward, episode.solution) == ("settled", 1.0, "It is 5.")


async def test_an_asynchronous_query_engine_that_fails_says_nothing_of_the_case(memory):
    memory.install()
    engine = RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=[RuntimeError("no model")]))
    with pytest.raises(RuntimeError, match="no model"):
        await engine.aquery("what is 2 + 3, please?")
    memory.sync()
    assert memory.stats().censored == 1
    assert memory.engine.episodes.rewards() == []


def test_without_install_an_episode_waits_for_its_reward(memory):
    answer = RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=["5"])).query("what is 2 + 3, please?")
    assert [one.id for one in memory.episodes.pending()] == [answer.source_nodes[0].metadata["cascade_episode_id"]]


def test_an_answer_that_is_still_to_come_is_not_judged(memory):
    memory.install()
    answer = RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=["It is 5."]), streaming=True).query("2 + 3?")
    assert str(answer) == "It is 5."
    memory.sync()
    (episode,) = memory.episodes.pending()
    assert episode.ended == "ok"


def test_an_engine_that_found_nothing_has_not_answered(make):
    memory = make().install()
    RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=["5"])).query("2 + 3?")
    memory.sync()
    assert memory.episodes.pending()[0].solution is None


def test_a_query_that_is_too_long_is_cut(memory):
    assert len(memory.retrieve("what is 2 + 3? " * 20_000)) == 1


def test_a_chat_engine_is_a_run_as_well(memory):
    memory.install()
    chat = ContextChatEngine.from_defaults(retriever=memory, llm=ScriptedLLM(script=["It is 5."]))
    assert str(chat.chat("what is 2 + 3, please?")) == "It is 5."
    assert str(chat.chat("what is 3 + 2, please?")) == "It is 5."
    memory.sync()
    assert memory.episodes.pending() == []
    assert [value for value, _ in memory.engine.episodes.rewards()] == [1.0, 1.0]
    for _ in chat.stream_chat("what is 2 + 2, please?").response_gen:
        pass
    memory.sync()
    (waiting,) = memory.episodes.pending()
    assert waiting.ended == "ok"


def test_embeddings_without_a_name_are_told_apart_by_their_class():
    class One(MockEmbedding):
        @classmethod
        def class_name(cls) -> str:
            return BaseComponent.class_name()

    class Other(One):
        pass

    one, other = (LlamaIndexEmbedder(kind(embed_dim=4)).identity for kind in (One, Other))
    assert one.endswith("One")
    assert one != other


def test_a_door_may_say_whose_tasks_it_recalls_for():
    with Engine(embedder="hashing", learn="inline") as engine:
        for user in ("ann", "bob"):
            CascadeMemory(engine=engine, metadata={"user": user}).retrieve("what is 2 + 3?")
        assert engine.forget(where={"user": "ann"}).episodes == 1
        assert [one.metadata for one in engine.episodes.pending()] == [{"user": "bob"}]
