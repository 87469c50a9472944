"""The middleware for create_agent: recall before, reward after, and nothing of the agent's own disturbed."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from adding_agents import add, ask, paid, solver
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, wrap_tool_call
from langchain.tools import ToolRuntime
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from scripted import call, model

from cascade_memory import Episode, Trajectory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory
from cascade_memory.ports.encoders import LoadsModel

Make = Callable[..., CascadeMemory]


def test_an_agent_recalls_before_it_starts_and_is_rewarded_when_it_answered(judged: CascadeMemory):
    script = solver()
    agent = create_agent(script, [add], middleware=[judged.middleware()])
    first = agent.invoke(ask())
    second = agent.invoke(ask("what is 2 + 3, please?"))
    assert paid(judged) == [1.0, 1.0]
    assert judged.engine.episodes.get(first["cascade_episode_id"]).reward == 1.0
    assert judged.engine.episodes.get(second["cascade_episode_id"]).cases
    case = judged.engine.recall("what is 2 + 3?").cases[0]
    assert isinstance(case.solution, Trajectory)
    assert [(step.thought, step.tool, step.observation) for step in case.solution.steps] == [("I add them.", "add", "5")]


async def test_an_asynchronous_agent_does_the_same_even_with_an_asynchronous_reward_function(make: Make):
    async def judge(episode: Episode) -> bool:
        await asyncio.sleep(0)
        return "5" in episode.answer

    memory = make(reward_fn=judge)
    await create_agent(solver(), [add], middleware=[memory.middleware()]).ainvoke(ask())
    assert paid(memory) == [1.0]


async def test_an_asynchronous_agent_does_not_recall_on_the_event_loop(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    where: list[bool] = []
    recall = judged.engine.recall

    def noted(*args: Any, **options: Any) -> Any:
        try:
            asyncio.get_running_loop()
            where.append(True)
        except RuntimeError:
            where.append(False)
        return recall(*args, **options)

    monkeypatch.setattr(judged.engine, "recall", noted)
    await create_agent(solver(), [add], middleware=[judged.middleware()]).ainvoke(ask())
    assert where == [False]


def test_the_episode_id_is_the_run_id_that_the_caller_chose(memory: CascadeMemory):
    agent = create_agent(solver(), [add], middleware=[memory.middleware()], checkpointer=InMemorySaver())
    run_id = uuid.uuid4()
    out = agent.invoke(ask(), {"run_id": run_id, "configurable": {"thread_id": "t"}})
    assert out["cascade_episode_id"] == str(run_id)
    assert memory.reward(run_id=run_id, value=1.0) is not None
    again = agent.invoke(ask(), {"run_id": run_id, "configurable": {"thread_id": "t"}})
    assert again["cascade_episode_id"] != str(run_id), "a run id that was used before opens an episode of its own"


def test_under_the_handler_the_episode_has_the_id_of_the_outermost_run(memory: CascadeMemory):
    inner = create_agent(model("5"), [], middleware=[memory.middleware()])

    @tool
    def delegate(task: str) -> str:
        """Ask another agent."""
        return inner.invoke(ask(task))["messages"][-1].text

    agent = create_agent(model(call("delegate", task="sub"), "It is 5."), [delegate], middleware=[memory.middleware()])
    run_id = uuid.uuid4()
    chain = RunnableLambda(lambda task: ask(task)) | agent
    out = chain.invoke("what is 2 + 3?", {"callbacks": [memory.callback], "run_id": run_id})
    assert out["cascade_episode_id"] == str(run_id)
    assert len(memory.episodes.pending()) == 2, "the agent within has an episode of its own"
    assert memory.reward(run_id=run_id, value=1.0) is not None


def test_a_later_reward_by_thread_finds_the_last_episode_and_its_solution(memory: CascadeMemory):
    agent = create_agent(solver(), [add], middleware=[memory.middleware()], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t1"}}
    agent.invoke(ask(), config)
    out = agent.invoke(ask("what is 2 + 3 + 0 + 7?"), config)
    case_id = memory.reward(thread_id="t1", value=1.0, source="human")
    assert memory.engine.episodes.get(out["cascade_episode_id"]).reward == 1.0
    assert memory.engine.cases.get(case_id).query == "what is 2 + 3 + 0 + 7?"
    assert len(memory.engine.cases.get(case_id).solution.steps) == 1, "only what was done for this message"


def test_an_early_end_by_a_limit_still_ends_the_episode(judged: CascadeMemory):
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    create_agent(solver(), [add], middleware=[judged.middleware(), limit]).invoke(ask())
    assert len(paid(judged)) == 1
    assert judged.episodes.pending() == []


@pytest.mark.parametrize("handler", [True, False])
def test_an_error_in_the_agent_is_raised_and_the_handler_censors_what_the_middleware_cannot_see(
    judged: CascadeMemory, handler: bool
):
    agent = create_agent(model(ValueError("no model")), [add], middleware=[judged.middleware()])
    with pytest.raises(ValueError, match="no model"):
        agent.invoke(ask(), {"callbacks": [judged.callback]} if handler else {})
    assert paid(judged) == []
    assert judged.stats().censored == int(handler)
    assert len(judged.episodes.pending()) == int(not handler), "without the handler it waits, to be expired"


def test_middleware_and_handler_together_pay_once(judged: CascadeMemory):
    agent = create_agent(solver(), [add, judged.tool()], middleware=[judged.middleware()])
    agent.invoke(ask(), {"callbacks": [judged.callback]})
    assert paid(judged) == [1.0]
    assert judged.stats().episodes == 1


def test_a_pending_episode_is_judged_by_one_of_the_two_only(make: Make):
    asked: list[str] = []

    def judge(episode: Episode) -> None:
        asked.append(episode.id)

    memory = make(reward_fn=judge)
    agent = create_agent(solver(), [add], middleware=[memory.middleware()], checkpointer=InMemorySaver())
    agent.invoke(ask(), {"callbacks": [memory.callback], "configurable": {"thread_id": "t"}})
    agent.invoke(ask(), {"callbacks": [memory.callback], "configurable": {"thread_id": "t"}})
    memory.sync()
    assert len(asked) == len(set(asked)) == 2
    assert len(memory.episodes.pending()) == 2


def test_a_recall_by_the_agent_itself_joins_the_episode(judged: CascadeMemory):
    judged.add("what is 2 + 3?", "five")
    retriever = create_retriever_tool(judged, "cases", "Finds cases.")
    script = model(call("recall_cases", query="2 + 3"), call("cases", query="2 + 3"), call("add", a=2, b=3), "It is 5.")
    out = create_agent(script, [add, judged.tool(), retriever], middleware=[judged.middleware()]).invoke(ask())
    episode = judged.engine.episodes.get(out["cascade_episode_id"])
    assert episode.recalls == 3
    assert judged.stats().episodes == 1
    assert [step.tool for step in episode.solution.steps] == ["add"], "recalled text is not stored again"


def test_a_tool_sees_the_episode(judged: CascadeMemory):
    seen: list[str] = []

    @tool
    def look(runtime: ToolRuntime) -> str:
        """Look."""
        seen.append(runtime.state["cascade_episode"]["CascadeMiddleware"]["id"])
        return "ok"

    out = create_agent(model(call("look"), "5"), [look], middleware=[judged.middleware()]).invoke(ask())
    assert seen == [out["cascade_episode_id"]]


def test_agents_within_agents_have_episodes_of_their_own_also_in_a_batch(judged: CascadeMemory):
    inner = create_agent(model("5"), [], middleware=[judged.middleware()])

    @tool
    def delegate(task: str) -> str:
        """Ask another agent."""
        return inner.invoke(ask(task))["messages"][-1].text

    outer = create_agent(model(call("delegate", task="sub"), "It is 5."), [delegate], middleware=[judged.middleware()])
    outer.batch([ask("a"), ask("b"), ask("c")])
    assert paid(judged) == [1.0] * 6
    assert judged.episodes.pending() == []


def test_a_block_of_the_user_takes_the_agent_in(judged: CascadeMemory):
    agent = create_agent(solver(), [add], middleware=[judged.middleware()])
    with judged.episode("what is 2 + 3?") as episode:
        out = agent.invoke(ask())
    assert out["cascade_episode_id"] == episode.id
    assert judged.stats().episodes == 1
    assert paid(judged) == [1.0]


def test_an_outer_graph_finds_the_episode_in_the_answer(judged: CascadeMemory):
    agent = create_agent(solver(), [add], middleware=[judged.middleware()])
    graph = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent").compile(checkpointer=InMemorySaver())
    out = graph.invoke(ask(), {"configurable": {"thread_id": "t"}})
    assert "cascade_episode_id" not in out
    assert judged.engine.episodes.get(out["messages"][-1].response_metadata["cascade_episode_id"]).reward == 1.0
    assert len(out["messages"]) == 4, "the answer was tagged, not repeated"


def test_an_episode_that_was_left_behind_is_censored_when_something_new_is_asked(judged: CascadeMemory):
    script = model(ValueError("no model"))
    agent = create_agent(script, [add], middleware=[judged.middleware()], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ValueError, match="no model"):
        agent.invoke(ask(), config)
    script.script = solver().script
    agent.invoke(ask("what is 2 + 3 now?"), config)
    assert paid(judged) == [1.0]
    assert judged.stats().censored == 1


# -- robustness ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["recall", "end"])
def test_a_failing_memory_does_not_stop_the_agent(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch, verb: str):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(judged.engine, verb, broken)
    agent = create_agent(solver(), [add], middleware=[judged.middleware()])
    assert agent.invoke(ask())["messages"][-1].text == "It is 5."
    assert "disk full" in (judged.health().last_error or "")


def test_a_reward_function_that_raises_leaves_the_episode_pending_and_one_line_says_so(
    make: Make, caplog: pytest.LogCaptureFixture
):
    def judge(_: Episode) -> float:
        raise KeyError("gold")

    memory = make(reward_fn=judge)
    agent = create_agent(solver(), [add], middleware=[memory.middleware()])
    agent.invoke(ask())
    assert memory.episodes.pending()[0].answer == "It is 5."
    assert memory.health().failures == {"reward_fn": 1}
    assert caplog.text.count("\n") == 1
    assert "reward_fn failed (KeyError: 'gold'); see memory.health()" in caplog.text


def test_two_memories_in_one_agent_need_two_names(make: Make):
    mine, ours = make(), make()
    with pytest.raises(AssertionError, match="duplicate"):
        create_agent(solver(), [add], middleware=[mine.middleware(), ours.middleware()])
    mine.add("what is 2 + 3?", "mine: five")
    ours.add("what is 2 + 3?", "ours: five")
    script = solver()
    agent = create_agent(script, [add], middleware=[mine.middleware(), ours.middleware(name="Ours")])
    out = agent.invoke(ask())
    for shown in script.seen:
        assert "mine: five" in shown[0].text
        assert "ours: five" in shown[0].text
    for one in (mine, ours):
        assert one.health().ok
        (episode,) = one.episodes.pending()
        assert episode.answer == "It is 5."
    assert out["cascade_episode_id"] == mine.episodes.pending()[0].id, "the first in the list is the one in the result"


def test_one_namespace_per_user(judged: CascadeMemory):
    @dataclass
    class Context:
        user: str

    agent = create_agent(
        solver(), [add], context_schema=Context, middleware=[judged.middleware(namespace=lambda runtime: runtime.context.user)]
    )
    agent.invoke(ask(), context=Context("ann"))
    agent.invoke(ask(), context=Context("bob"))
    assert judged.acting(namespace="ann").stats().cases == judged.acting(namespace="bob").stats().cases == 1
    assert judged.stats().cases == 0
    with pytest.raises(InvalidInput, match="namespace"):
        judged.middleware(namespace=5)  # type: ignore[arg-type]


def test_an_interrupt_within_a_tool_passes_through_the_middleware(judged: CascadeMemory):
    """GraphInterrupt is an Exception: whoever catches it breaks human in the loop."""
    from langgraph.types import interrupt

    @tool
    def confirm() -> str:
        """Ask."""
        return str(interrupt("sure?"))

    agent = create_agent(model(call("confirm"), "5"), [confirm], middleware=[judged.middleware()], checkpointer=InMemorySaver())
    out = agent.invoke(ask(), {"configurable": {"thread_id": "t"}})
    assert out["__interrupt__"][0].value == "sure?"
    assert paid(judged) == []


def test_other_middleware_around_tools_still_works(judged: CascadeMemory):
    @wrap_tool_call
    def shout(request: Any, handler: Any) -> Any:
        result = handler(request)
        return result.model_copy(update={"content": str(result.content) + "!"})

    out = create_agent(solver(), [add], middleware=[judged.middleware(), shout]).invoke(ask())
    assert judged.engine.episodes.get(out["cascade_episode_id"]).solution.steps[0].observation == "5!"


def test_the_model_is_loaded_while_the_agent_is_being_built(make: Make):
    class Loading(HashingEmbedder, LoadsModel):
        def __init__(self) -> None:
            super().__init__()
            self.loaded = threading.Event()

        def prepare(self) -> None:
            self.loaded.set()

    embedder = Loading()
    make(embedder=embedder).middleware()
    assert embedder.loaded.wait(20)


def test_a_model_that_cannot_be_loaded_yet_is_counted_and_stops_nobody(make: Make):
    class Missing(HashingEmbedder, LoadsModel):
        def prepare(self) -> None:
            raise OSError("the file is not there")

    memory = make(embedder=Missing())
    memory.middleware()
    until = time.monotonic() + 20
    while not memory.health().failures and time.monotonic() < until:
        time.sleep(0.01)
    assert memory.health().failures == {"warm": 1}
