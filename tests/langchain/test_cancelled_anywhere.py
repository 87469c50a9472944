"""Runs that are cancelled wherever they wait: nothing stays open, nothing is learned, and the next run works."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from adding_agents import add, ask, assert_clean, watched
from cancelling import EVERY, MOMENTS, Cancelling, Mine, Moment, cancelled_at, nothing_open
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import call, model

from cascade_memory import Episode, Ranking
from cascade_memory.langchain import CascadeMemory

pytestmark = pytest.mark.fuzz

Run = Callable[[], Awaitable[Any]]


class Judge:
    """Judges every run as a success, and counts."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    async def __call__(self, episode: Episode) -> float:
        self.judged.append(episode.id)
        await asyncio.sleep(0)
        return 1.0


@tool
async def wait_and_add(a: int, b: int) -> int:
    """Add."""
    await asyncio.sleep(0)
    return a + b


class State(MessagesState):
    cascade: dict


async def act(state: State) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"messages": [("ai", "It is 5.")]}


def agent_with_tool(memory: CascadeMemory) -> Run:
    script = model(call("recall_cases", query="2 + 3"), call("wait_and_add", a=2, b=3), call("add", a=2, b=3), "It is 5.")
    agent = create_agent(script, [memory.tool(), wait_and_add, add])
    return lambda: agent.ainvoke(ask(), watched(memory))


def agent_with_middleware(memory: CascadeMemory) -> Run:
    agent = create_agent(model(call("wait_and_add", a=2, b=3), "It is 5."), [wait_and_add], middleware=[memory.middleware()])
    return lambda: agent.ainvoke(ask(), watched(memory))


def graph(memory: CascadeMemory) -> Run:
    built = (
        StateGraph(State).add_node("recall", memory.recall_node()).add_node("act", act).add_node("learn", memory.learn_node())
    )
    built.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
    compiled = built.compile()
    return lambda: compiled.ainvoke(ask(), watched(memory))


def chain(memory: CascadeMemory) -> Run:
    """Before Python 3.11, LangChain does not pass the context on, so this passes the config (docs/troubleshooting.md)."""

    async def look(task: str, config: RunnableConfig) -> str:
        await (memory.ainvoke(task) if sys.version_info >= (3, 11) else memory.ainvoke(task, config))
        await asyncio.sleep(0)
        return "It is 5."

    made = RunnableLambda(look) | RunnableLambda(lambda text: text)
    return lambda: made.ainvoke("2 + 3", watched(memory))


def stream(memory: CascadeMemory) -> Run:
    made = memory | RunnableLambda(lambda documents: "It is 5.") | model("It is 5.")

    async def read() -> None:
        async for _ in made.astream("2 + 3", watched(memory)):
            pass

    return read


def block(memory: CascadeMemory) -> Run:
    async def work() -> None:
        async with memory.episode("2 + 3") as episode:
            await memory.ainvoke("3 + 2")
            await asyncio.sleep(0)
            episode.solution = "It is 5."

    return work


KINDS = [agent_with_tool, agent_with_middleware, graph, chain, stream, block]


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def memory(make: Callable[..., CascadeMemory], judge: Judge) -> CascadeMemory:
    memory = make(reward_fn=judge, embedder=Mine(), ranking=Ranking(abstain=False))
    memory.add("2 + 3", "5")
    return memory


async def ends_well(memory: CascadeMemory, judge: Judge, run: Run) -> None:
    """Look that nothing is left of the runs before, and that the next run is learned from."""
    assert await nothing_open(memory)
    before = memory.stats().rewards
    assert before == len(judge.judged), "nothing was learned but what was judged"
    await run()
    assert memory.episodes.pending() == []
    assert memory.stats().rewards == before + 1
    assert_clean(memory)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_at_any_suspension(memory: CascadeMemory, judge: Judge, kind: Any, caplog: pytest.LogCaptureFixture):
    run, nth, judged_before = kind(memory), 1, 0
    await run()
    memory.sync()
    assert judge.judged, "a whole run is judged"
    judge_at: int | None = None
    judged_before = len(judge.judged)
    while await cancelled_at(nth, run):
        assert await nothing_open(memory), f"cancelled at suspension {nth}"
        assert memory.callback.open_runs == 0
        if len(judge.judged) > judged_before and judge_at is None:
            judge_at = nth
        if judge_at is None:
            assert memory.stats().rewards == judged_before, f"cancelled at suspension {nth}"
        nth += EVERY
        assert nth < 2000
    assert memory.episodes.pending() == []
    assert [record for record in caplog.records if record.name.startswith("cascade")] == []


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_while_it_recalls(memory: CascadeMemory, judge: Judge, kind: Any, moment: Moment):
    run, cancelling = kind(memory), Cancelling(memory, moment)
    if kind is block:
        pytest.skip("its first recall waits for nobody")
    for _ in range(3):
        assert await cancelling.run(run)
    assert cancelling.times == 3
    assert judge.judged == []
    await ends_well(memory, judge, run)
