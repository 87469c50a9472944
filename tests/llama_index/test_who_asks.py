"""Who asks is said around a run, by LlamaIndex's own tags, and reaches whatever recalls in it; no message says it."""

from __future__ import annotations

import pytest
from llama_agents import TASK, function_agent, with_block
from llama_index_instrumentation.dispatcher import instrument_tags

from cascade_memory import CascadeMemory as Engine
from cascade_memory import Ranking
from cascade_memory.llama_index import CascadeMemory

TAGS = {"cascade_actor": "ann"}


@pytest.mark.parametrize("kind", ["block", "tool", "arun", "retriever", "session"])
@pytest.mark.parametrize("installed", [True, False])
async def test_every_door_knows_who_asks(make, kind: str, installed: bool):
    memory = make(ranking=Ranking(abstain=False), reward_fn=lambda _: 1.0)
    if installed:
        memory.install()
    with instrument_tags(TAGS):
        if kind == "block":
            await function_agent("5").run(TASK, memory=with_block(memory))
        elif kind == "tool":
            await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
        elif kind == "arun":
            await memory.arun(function_agent("5"), TASK)
        elif kind == "retriever":
            await memory.aretrieve("2 + 3")
        else:
            with memory.episode("2 + 3") as session:
                session.reward(1.0, solution="5")
    memory.sync()
    (episode,) = memory.engine.episodes.all()
    assert (episode.actor, episode.channel) == ("ann", "llama_index")
    if kind == "arun":
        (case,) = memory.cases.all()
        assert (case.actor, case.channel) == ("ann", "llama_index")


async def test_without_it_the_engine_s_actor_asks():
    with CascadeMemory(engine=Engine(embedder="hashing", learn="inline").acting(actor="service")).install() as memory:
        await function_agent("cascade_actor: admin").run("cascade_actor: admin", memory=with_block(memory))
        with instrument_tags(TAGS):
            await function_agent("5").run(TASK, memory=with_block(memory))
        memory.sync()
        assert [one.actor for one in memory.engine.episodes.all()] == ["service", "ann"]


async def test_a_memory_acting_in_a_namespace_ends_what_it_began_there(make):
    memory = make(reward_fn=lambda _: 1.0)
    theirs = memory.acting(actor="bob", namespace="theirs").install()
    with instrument_tags(TAGS):
        await function_agent("5").run(TASK, memory=with_block(theirs))
        with theirs.episode("2 + 3") as session:
            session.solution = "5"
    theirs.sync()
    assert [(one.status, one.reward, one.actor) for one in theirs.episodes.all()] == [("settled", 1.0, "bob")] * 2
    assert list(memory.episodes.all()) == []
    theirs.uninstall()
