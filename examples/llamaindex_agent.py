"""A LlamaIndex agent that learns which past cases to reuse. The model is SCRIPTED; everything else is real.

    python examples/llamaindex_agent.py

The agent looks after a shop's orders. The right tool depends on what a customer means, not on the words. The scripted model
copies the tool of the case that it is shown; without a case it guesses.
"""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import InsertMethod, Memory
from pydantic import PrivateAttr

from cascade_memory.llama_index import CascadeMemory

WORDS = {
    "refund": ["give me my money back for order {n}", "order {n}: I want to be paid back", "return the payment of {n}"],
    "resend": ["order {n} never came", "where is order {n}? it should be here", "{n} got lost in the post"],
    "cancel": ["stop order {n} before it leaves", "I changed my mind about {n}", "do not send {n}"],
}


def refund(order: int) -> str:
    """Pay an order back."""
    return f"order {order}: paid back"


def resend(order: int) -> str:
    """Send an order again."""
    return f"order {order}: sent again"


def cancel(order: int) -> str:
    """Stop an order."""
    return f"order {order}: stopped"


class Scripted(FunctionCallingLLM):
    """Calls the tool that the shown case called; without a case it guesses. Put a real model in its place."""

    _random: random.Random = PrivateAttr(default_factory=lambda: random.Random(0))

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _next(self, messages: Any) -> ChatResponse:
        last = messages[-1]
        if last.role.value == "tool":
            return ChatResponse(message=ChatMessage(role="assistant", content=str(last.content)), delta=str(last.content))
        text = str(last.content)
        shown = re.search(r"> (refund|resend|cancel)\(", text)
        tool = shown[1] if shown else self._random.choice(list(WORDS))
        order = int(re.findall(r"\d+", text.rsplit("</memory>", 1)[-1])[-1])
        call = {"name": tool, "order": order}
        return ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"call": call}), delta="")

    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        return self._next(messages)

    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        return self._next(messages)

    async def astream_chat(self, messages: Any, **_: Any) -> Any:
        async def stream() -> Any:
            yield self._next(messages)

        return stream()

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this agent chats asynchronously")

    complete = acomplete = stream_complete = astream_complete = stream_chat = _unused

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
        call = response.message.additional_kwargs.get("call")
        if call is None:
            return []
        return [ToolSelection(tool_name=call["name"], tool_kwargs={"order": call["order"]}, tool_id="1")]


async def play(tasks: int, seed: int = 0) -> list[bool]:
    """Play a stream of tasks; return for each whether it was solved."""
    rng = random.Random(seed)
    wanted = {"refund": "paid back", "resend": "sent again", "cancel": "stopped"}
    right = ""

    def judge(episode: Any) -> bool:
        return right in episode.answer

    solved: list[bool] = []
    with CascadeMemory(embedder="hashing", reward_fn=judge, learn="inline").install() as memory:
        agent = FunctionAgent(llm=Scripted(), tools=[refund, resend, cancel])
        for number in range(tasks):
            kind = rng.choice(list(WORDS))
            right = f"order {number}: {wanted[kind]}"
            shown = Memory.from_defaults(memory_blocks=[memory.block()], insert_method=InsertMethod.USER)
            answer = await agent.run(rng.choice(WORDS[kind]).format(n=number), memory=shown)
            memory.sync()
            solved.append(right in str(answer))
    return solved


def main() -> None:
    """Play 90 tasks, and print the share that was solved in each third."""
    solved = asyncio.run(play(90))
    print("SCRIPTED model, real agent, tools and memory; solved in each third of 90 tasks:")
    print("  ".join(f"{sum(solved[i : i + 30]) / 30:.0%}" for i in (0, 30, 60)))


if __name__ == "__main__":
    main()
