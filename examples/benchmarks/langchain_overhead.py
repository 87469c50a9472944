"""How much time do middleware and callback handler add to the agent? Recall and reward are subtracted, and shown.

    python examples/benchmarks/langchain_overhead.py

The agent is a ``create_agent`` with a scripted model that calls one tool and answers. Runs with and without the two alternate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from cascade_memory.langchain import CascadeMemory


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


class Scripted(BaseChatModel):
    """A SCRIPTED model: it calls the tool, then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        call = {"name": "double", "args": {"number": 2}, "id": "call_1", "type": "tool_call"}
        message = AIMessage("It is 4.") if messages[-1].type == "tool" else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


class Stopwatch:
    """Adds up the time spent in recall and reward."""

    def __init__(self, engine: Any) -> None:
        self.spent = 0.0
        for place, verbs in (
            (type(engine), ("recall", "end")),
            (type(engine.episodes), ("get", "latest", "finish", "conclude")),
        ):
            for verb in verbs:
                setattr(place, verb, self._timed(getattr(place, verb)))

    def _timed(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return verb(*args, **options)
            finally:
                self.spent += time.perf_counter() - began

        return timed


def measure(times: int) -> dict[str, float]:
    """Return medians in milliseconds."""
    rows = []
    # It learns within the reward: a learning thread would take time from whichever of the two agents runs at that moment.
    with CascadeMemory(embedder="hashing", reward_fn=lambda _: 1.0, learn="inline") as memory:
        engine = Stopwatch(memory.engine)
        plain = create_agent(Scripted(), [double])
        hooked = create_agent(Scripted(), [double], middleware=[memory.middleware()])
        for i in range(times):
            asked = {"messages": [("user", f"double 2, for the {i}th time")]}
            engine.spent = 0.0
            marks = [time.perf_counter()]
            plain.invoke(asked)
            marks.append(time.perf_counter())
            hooked.invoke(asked, {"callbacks": [memory.callback]})
            marks.append(time.perf_counter())
            without, with_memory = np.diff(marks)
            rows.append((without, with_memory, engine.spent, with_memory - without - engine.spent))
        assert memory.stats().rewards == times
    return dict(zip(("alone", "hooked", "engine", "overhead"), 1000 * np.median(rows, axis=0), strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=300)
    found = measure(parser.parse_args().times)
    print("medians in ms per episode (two model calls, one tool call)")
    print(f"  the agent alone                 {found['alone']:.2f}")
    print(f"  with middleware and handler     {found['hooked']:.2f}")
    print(f"  of which recall and reward      {found['engine']:.2f}")
    print(f"  middleware and handler add      {found['overhead']:.2f}   (asked: at most 3)")


if __name__ == "__main__":
    main()
