"""An episode has the name of the model that wrote the final answer: of its response, or else the name that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_agents import ADDING, TASK, add, function_agent, only_episode, with_block
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from scripted_llm import ScriptedLLM


class Named(ScriptedLLM):
    """Its responses have the provider's own answer, with the exact name of the model; its metadata have a shorter one."""

    name: Any = "writer-2"
    asked: str = "writer"
    in_raw: bool = True
    as_object: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name=self.asked, context_window=100_000)

    def _answer(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        found = super()._answer(messages)
        if self.in_raw:
            found.raw = SimpleNamespace(model=self.name) if self.as_object else {"model": self.name}
        return found


def agent_of(llm: ScriptedLLM, **options: Any) -> FunctionAgent:
    return FunctionAgent(llm=llm, tools=[add], **options)


def model_of(memory: Any) -> Any:
    return only_episode(memory).metadata.get("model")


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_an_agents_episode_and_case_have_the_name_from_the_response(memory: Any, streaming: bool, as_object: bool):
    memory.install()
    agent = agent_of(Named(script=[ADDING, "it is 5"], as_object=as_object), streaming=streaming)
    asyncio.run(_run(agent, memory))
    assert model_of(memory) == "writer-2"
    assert "writer-2" in [one.metadata.get("model") for one in memory.cases.all()]


async def _run(agent: Any, memory: Any) -> None:
    await agent.run(TASK, memory=with_block(memory))


@pytest.mark.parametrize("streaming", [False, True])
def test_without_a_name_in_the_response_it_is_the_one_that_was_asked_for(memory: Any, streaming: bool):
    memory.install()
    asyncio.run(_run(agent_of(Named(script=[ADDING, "it is 5"], in_raw=False), streaming=streaming), memory))
    assert model_of(memory) == "writer"


@pytest.mark.parametrize("asked", ["", "unknown"])
def test_a_run_without_a_name_stamps_nothing(memory: Any, asked: str):
    memory.install()
    asyncio.run(_run(agent_of(Named(script=["it is 5"], in_raw=False, asked=asked)), memory))
    assert model_of(memory) is None
    assert memory.health().ok


def test_a_model_that_cannot_say_its_metadata_stamps_nothing(memory: Any):
    class Silent(Named):
        @property
        def metadata(self) -> LLMMetadata:
            if self.seen:
                raise ValueError("unknown model")
            return super().metadata

    memory.install()
    asyncio.run(_run(agent_of(Silent(script=["it is 5"], in_raw=False)), memory))
    assert model_of(memory) is None
    assert memory.health().ok


def test_arun_names_the_model_without_install(memory: Any):
    _, episode = asyncio.run(memory.arun(agent_of(Named(script=[ADDING, "it is 5"])), TASK))
    assert episode.metadata == {"model": "writer-2"}


def test_arun_without_a_name_in_the_response(memory: Any):
    _, episode = asyncio.run(memory.arun(function_agent(ADDING, "it is 5"), TASK))
    assert episode.metadata == {"model": "scripted"}


def test_of_several_models_the_one_that_wrote_the_final_answer_counts(memory: Any):
    """The first model writes an answer draft within a tool; the agent's model answers."""
    inner = Named(script=["5"], name="inner-3")

    async def ask(question: str) -> str:
        """Ask another model."""
        return str((await inner.achat([ChatMessage(role="user", content=question)])).message.content)

    memory.install()
    outer = Named(script=[("ask", {"question": "2 + 3"}), "it is 5"])
    asyncio.run(_run(FunctionAgent(llm=outer, tools=[ask]), memory))
    assert model_of(memory) == "writer-2"


def test_a_query_engine(memory: Any):
    memory.install()
    engine = RetrieverQueryEngine(memory, get_response_synthesizer(llm=Named(script=["it is 5"])))
    engine.query("what is 2 + 3?")
    assert model_of(memory) == "writer"  # its completions have no answer of the provider


def test_a_field_of_the_users_own_stays(make: Any):
    memory = make(metadata={"model": "Civic"}, reward_fn=lambda _: 1.0)
    asyncio.run(memory.arun(agent_of(Named(script=["it is 5"])), TASK))
    assert model_of(memory) == "Civic"
