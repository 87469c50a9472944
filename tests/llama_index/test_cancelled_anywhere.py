"""LlamaIndex runs that are cancelled wherever they wait: nothing stays open, nothing is learned, and the next run works."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cancelling import EVERY, MOMENTS, Cancelling, Mine, Moment, cancelled_at, nothing_open
from llama_agents import ADDING, TASK, add, function_agent, with_block
from llama_index.core.agent.workflow import AgentWorkflow, ReActAgent
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from scripted_llm import ScriptedLLM
from workflows.errors import WorkflowCancelledByUser

from cascade_memory import Episode, Ranking
from cascade_memory.llama_index import CascadeMemory

pytestmark = [
    pytest.mark.fuzz,
    # LlamaIndex's Memory never closes its SQLite (see pyproject.toml), of which Python 3.13 tells in another way.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <sqlite3.Connection:pytest.PytestUnraisableExceptionWarning"),
]

Run = Callable[[], Awaitable[Any]]
ASKING = ("recall_cases", {"query": "2 + 3"})


class Judge:
    """Judges every run as a success, and counts."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    def __call__(self, episode: Episode) -> float:
        self.judged.append(episode.id)
        return 1.0


async def slow_add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


SLOW = ("slow_add", {"a": 2, "b": 3})


def agent_with_tool(memory: CascadeMemory) -> Run:
    agent = function_agent(ASKING, SLOW, ADDING, "5", tools=(memory.tool(), FunctionTool.from_defaults(async_fn=slow_add), add))
    return lambda: _handled(agent.run(TASK))


def agent_with_block(memory: CascadeMemory) -> Run:
    agent = function_agent(SLOW, "5", tools=(FunctionTool.from_defaults(async_fn=slow_add),))
    return lambda: _handled(agent.run(TASK, memory=with_block(memory)))


def agent_with_context(memory: CascadeMemory) -> Run:
    agent = function_agent(ASKING, "5", tools=(memory.tool(),))
    return lambda: _handled(agent.run(TASK, ctx=Context(agent)))


def workflow_of_agents(memory: CascadeMemory) -> Run:
    agent = function_agent(ASKING, "5", tools=(memory.tool(),), name="one", description="adds")
    flow = AgentWorkflow(agents=[agent], root_agent="one")
    return lambda: _handled(flow.run(user_msg=TASK))


def react(memory: CascadeMemory) -> Run:
    script = ['Thought: I look.\nAction: recall_cases\nAction Input: {"query": "2 + 3"}', "Thought: I know.\nAnswer: 5"]
    agent = ReActAgent(llm=ScriptedLLM(script=script, calls_tools=False), tools=[memory.tool()])
    return lambda: _handled(agent.run(TASK))


def query_engine(memory: CascadeMemory) -> Run:
    engine = RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=["5"]))
    return lambda: engine.aquery("2 + 3")


def chat_engine(memory: CascadeMemory) -> Run:
    return lambda: ContextChatEngine.from_defaults(retriever=memory, llm=ScriptedLLM(script=["5"])).achat("2 + 3")


def explicit(memory: CascadeMemory) -> Run:
    agent = function_agent(SLOW, "5", tools=(FunctionTool.from_defaults(async_fn=slow_add),))
    return lambda: memory.arun(agent, TASK)


async def _handled(handler: Any) -> Any:
    """Wait for a run; if the waiting is cancelled, cancel the run: LlamaIndex does not."""
    try:
        return await handler
    except asyncio.CancelledError:
        await handler.cancel_run()
        with pytest.raises((WorkflowCancelledByUser, asyncio.CancelledError)):
            await handler
        raise


KINDS = [agent_with_tool, agent_with_block, agent_with_context, workflow_of_agents, react, query_engine, chat_engine, explicit]


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def memory(make: Callable[..., CascadeMemory], judge: Judge) -> CascadeMemory:
    memory = make(reward_fn=judge, embedder=Mine(), ranking=Ranking(abstain=False))
    memory.add("what is 2 + 3?", "add the numbers: 5")
    return memory.install()


async def ends_well(memory: CascadeMemory, judge: Judge, run: Run, *, judged: int = 0) -> None:
    """Look that nothing is left of the runs before, and that the next run is learned from."""
    assert await nothing_open(memory)
    assert memory.stats().rewards == len(judge.judged) == judged
    await run()
    memory.sync()
    assert memory.episodes.pending() == []
    assert memory.stats().rewards == judged + 1
    assert (memory.open_runs, memory.health().failures) == (0, {})


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_at_any_suspension(memory: CascadeMemory, judge: Judge, kind: Any, caplog: pytest.LogCaptureFixture):
    run, nth = kind(memory), 1
    await run()
    memory.sync()
    assert len(judge.judged) == 1
    while await cancelled_at(nth, run):
        assert await nothing_open(memory), f"cancelled at suspension {nth}"
        nth += EVERY
        assert nth < 2000
    assert [record for record in caplog.records if record.name.startswith("cascade")] == []


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_while_it_recalls(memory: CascadeMemory, judge: Judge, kind: Any, moment: Moment):
    run, cancelling = kind(memory), Cancelling(memory, moment)
    for _ in range(2):
        assert await cancelling.run(run)
    assert cancelling.times == 2
    await ends_well(memory, judge, run)


def test_a_run_that_its_loop_did_not_wait_for_is_censored(memory: CascadeMemory, judge: Judge):
    agent = function_agent(ASKING, "5", tools=(memory.tool(),), pause=0.5)

    async def left() -> None:
        agent.run(TASK)
        while not memory.engine.stats().episodes:
            await asyncio.sleep(0.005)

    asyncio.run(left())
    gc.collect()
    memory.sync()
    assert (judge.judged, memory.stats().open, memory.open_runs) == ([], 0, 0)


async def test_a_tool_in_a_thread_that_outlives_its_run_leaves_nothing(memory: CascadeMemory, judge: Judge):
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def look(query: str) -> str:
        begun.set()
        go_on.wait(20)
        try:
            return str(memory.retrieve(query))
        finally:
            over.set()

    async def slow_look(query: str) -> str:
        """Look."""
        return await asyncio.to_thread(look, query)

    agent = function_agent(("slow_look", {"query": "2 + 3"}), "5", tools=(FunctionTool.from_defaults(async_fn=slow_look),))
    handler = agent.run(TASK)
    await asyncio.to_thread(begun.wait, 20)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    go_on.set()
    await asyncio.to_thread(over.wait, 20)
    assert await nothing_open(memory)
    assert (judge.judged, memory.stats().rewards) == ([], 0)


@pytest.mark.parametrize("how", ["stream_chat", "astream_chat"])
async def test_a_streamed_answer_waits_for_a_reward_whether_it_is_read_or_not(memory: CascadeMemory, judge: Judge, how: str):
    engine = ContextChatEngine.from_defaults(retriever=memory, llm=ScriptedLLM(script=["It is 5."]))
    if how == "astream_chat":
        answer = await engine.astream_chat("2 + 3")
        async for _ in answer.async_response_gen():
            break
    else:
        answer = engine.stream_chat("2 + 3")
        for _ in answer.response_gen:
            break
    memory.sync()
    (episode,) = memory.episodes.pending()
    assert (judge.judged, episode.ended, memory.open_runs) == ([], "ok", 0)
