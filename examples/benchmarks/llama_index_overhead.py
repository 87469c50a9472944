"""How much processor time do the block, the hook and ``arun`` add to a LlamaIndex agent? Recall and reward are shown apart.

    python examples/benchmarks/llama_index_overhead.py

The agent is a ``FunctionAgent`` with a scripted model that calls one tool and answers. All ways to run it take turns, so that a
busy machine slows all of them. Each is compared with an agent without our memory; where the cases are shown by our block, also
with a block of LlamaIndex's own that shows a fixed text.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import InsertMethod, Memory, StaticMemoryBlock

from cascade_memory import Ranking
from cascade_memory.llama_index import CascadeMemory

PLAIN = "agent alone"
BESIDE = {  # a way to run the agent: the way without our part that it is compared with
    PLAIN: None,
    "arun": PLAIN,
    "agent with Memory": None,
    "hook": "agent with Memory",
    "static block": "agent with Memory",
    "block": "static block",
    "block and hook": "static block",
}


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


class Scripted(FunctionCallingLLM):
    """A SCRIPTED model: it calls the tool, then answers."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        if messages[-1].role.value == "tool":
            return ChatResponse(message=ChatMessage(role="assistant", content="It is 4."), delta="It is 4.")
        return ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"calls": True}), delta="")

    async def astream_chat(self, messages: Any, **_: Any) -> Any:
        async def stream() -> Any:
            yield await self.achat(messages)

        return stream()

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this agent chats asynchronously")

    chat = complete = acomplete = stream_complete = astream_complete = stream_chat = _unused

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
        called = "calls" in response.message.additional_kwargs
        return [ToolSelection(tool_name="double", tool_kwargs={"number": 2}, tool_id="1")] if called else []


class Stopwatch:
    """Adds up the processor time of recall and reward, on whichever thread they run."""

    def __init__(self, engine: Any) -> None:
        self.spent, self._inside = 0.0, threading.local()
        for place, verbs in (
            (type(engine), ("recall", "end")),
            (type(engine.episodes), ("get", "latest", "finish", "conclude")),
        ):
            for verb in verbs:
                setattr(place, verb, self._timed(getattr(place, verb)))

    def _timed(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            if getattr(self._inside, "one", False):  # one verb calls another one
                return verb(*args, **options)
            self._inside.one, began = True, time.thread_time()
            try:
                return verb(*args, **options)
            finally:
                self._inside.one = False
                self.spent += time.thread_time() - began

        return timed


@contextlib.contextmanager
def memories() -> Iterator[dict[str, CascadeMemory]]:
    """Open a memory for each way, so that all have as many cases. They learn within the reward."""
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {"embedder": "hashing", "learn": "inline", "ranking": Ranking(abstain=False)}
        found = {way: stack.enter_context(CascadeMemory(reward_fn=lambda _: 1.0, **options)) for way in BESIDE}
        for memory in found.values():
            memory.add("double 2, please", "double({number: 2})")
        yield found


async def run(agent: FunctionAgent, way: str, memory: CascadeMemory, task: str, text: str) -> None:
    """Run the agent in one of the ways."""
    if way == "arun":
        await memory.arun(agent, task)
        return
    if way == PLAIN:
        await agent.run(task)
        return
    blocks = [StaticMemoryBlock(static_content=text)] if way == "static block" else [memory.block()]
    shown = blocks if "block" in way else []
    await agent.run(task, memory=Memory.from_defaults(memory_blocks=shown, insert_method=InsertMethod.USER))
    await asyncio.to_thread(memory.sync)


async def measure(times: int) -> dict[str, tuple[float, float]]:
    """Return medians in milliseconds of processor time for each way: in all, and of that in recall and reward."""
    agent, order = FunctionAgent(llm=Scripted(), tools=[double]), np.random.default_rng(0)
    rows: dict[str, list[tuple[float, float]]] = {way: [] for way in BESIDE}
    with memories() as found:
        watches = {way: Stopwatch(memory.engine) for way, memory in found.items()}
        text = found[PLAIN].recall("double 2").render()
        for i in range(times + 5):  # the first five warm up
            for way in order.permutation(list(BESIDE)).tolist():  # what one leaves behind slows the next one
                memory = found[way]
                if "hook" in way:
                    memory.install()
                watches[way].spent, began = 0.0, time.process_time()
                await run(agent, way, memory, f"double 2, for the {i}th time", text)
                spent = time.process_time() - began
                memory.uninstall()
                rows[way].append((spent, watches[way].spent))
        for way in ("block and hook", "arun"):
            assert found[way].stats().rewards == times + 5
    medians = {way: 1000 * np.median(measured[5:], axis=0) for way, measured in rows.items()}
    return {way: (float(spent), float(engine)) for way, (spent, engine) in medians.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=100)
    found = asyncio.run(measure(parser.parse_args().times))
    print("medians in ms of processor time per task (two model calls, one tool call)")
    print(f"{'':20}{'all':>6}{'recall and reward':>20}  the rest adds")
    for way, (spent, engine) in found.items():
        beside, rest = BESIDE[way], spent - engine
        base = 0.0 if beside is None else found[beside][0]
        adds = "" if beside is None else f"{rest - base:8.1f} to {beside}: {rest / base:.2f} times as much"
        print(f"{way:20}{spent:6.1f}{engine:20.1f}{adds}")


if __name__ == "__main__":
    main()
