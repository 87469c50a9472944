"""LlamaIndex's own client of OpenAI-compatible servers, against one on this machine: cases travel over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_core")  # in which the server's replies are written

from inside import engine_of
from langchain_core.messages import AIMessage, BaseMessage
from llama_agents import add, with_block
from llama_index.core.agent.workflow import FunctionAgent
from openai_server import serving

from cascade_memory.llama_index import CascadeMemory


def reply(messages: Sequence[BaseMessage]) -> AIMessage:
    """Add with the tool, then say what came out."""
    if messages[-1].type == "tool":
        return AIMessage(f"It is {messages[-1].text}.")
    return AIMessage("", tool_calls=[{"name": "add", "args": {"a": 2, "b": 3}, "id": f"call_{uuid.uuid4().hex[:8]}"}])


@pytest.mark.slow
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_case_is_kept_and_shown_to_the_next_run(streaming: bool):
    openai_like = pytest.importorskip("llama_index.llms.openai_like")  # here: OpenAI's own package takes seconds to load

    def judge(episode: Any) -> bool:
        return "5" in episode.answer

    with serving(reply) as (url, received), CascadeMemory(embedder="hashing", reward_fn=judge, learn="inline") as memory:
        memory.install()
        model = openai_like.OpenAILike(
            model="some-model", api_base=url, api_key="none", is_chat_model=True, is_function_calling_model=True
        )
        agent = FunctionAgent(llm=model, tools=[add], streaming=streaming)
        assert str(await agent.run("what is 2 + 3?", memory=with_block(memory))) == "It is 5."
        memory.sync()
        assert memory.stats().cases == 1
        await agent.run("what is 3 + 2?", memory=with_block(memory))
        memory.sync()
        assert [episode.reward for episode in engine_of(memory).parts.ledger.episodes.listed(None)] == [1.0, 1.0]
    first, *_, last = ("\n".join(str(message["content"]) for message in one["messages"]) for one in received)
    assert 'add({"a": 2, "b": 3})' not in first
    assert 'add({"a": 2, "b": 3})' in last
    assert {one["model"] for one in received} == {"some-model"}
    assert {bool(one.get("stream")) for one in received} == {streaming}
    assert received[0]["tools"][0]["function"]["name"] == "add"
