"""The callback handler: every recall on the episode of its outermost run, closed once, whatever happens to the run."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from scripted import call, model

from cascade_memory import Episode, Trajectory
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def explode() -> str:
    """Fail."""
    raise RuntimeError("the tool exploded")


def ask(text: str = "what is 2 + 3?") -> dict[str, Any]:
    return {"messages": [("user", text)]}


def watched(memory: CascadeMemory, **more: Any) -> dict[str, Any]:
    return {"callbacks": [memory.callback], **more}


def solver(memory: CascadeMemory, *more: Any) -> Any:
    script = model(call("recall_cases", query="2 + 3"), call("add", "I add them.", a=2, b=3), "It is 5.")
    return create_agent(script, [memory.tool(), add, *more])


@pytest.fixture
def judged(make: Make) -> CascadeMemory:
    """Judges answers; a run that raised has none."""
    return make(reward_fn=lambda episode: None if episode.status == "error" else "5" in episode.answer)


def rewards(memory: CascadeMemory) -> list[float]:
    memory.sync()
    return [value for value, _ in memory.engine.rewards()]


def assert_clean(memory: CascadeMemory) -> None:
    memory.sync()
    assert memory.callback.open_runs == 0
    assert memory.health().failures == {}


def test_a_run_is_rewarded_once_when_it_ends_and_its_trajectory_is_kept(judged: CascadeMemory):
    solver(judged).invoke(ask(), watched(judged))
    assert rewards(judged) == [1.0]
    case = judged.engine.recall("2 + 3").cases[0]
    assert isinstance(case.solution, Trajectory)
    assert [(step.thought, step.action, step.observation) for step in case.solution.steps] == [
        ("I add them.", 'add({"a": 2, "b": 3})', "5")
    ]
    assert case.solution.answer == "It is 5."
    assert_clean(judged)


def test_the_episode_has_the_id_of_the_run_so_that_feedback_by_run_id_finds_it(memory: CascadeMemory):
    run_id = uuid.uuid4()
    solver(memory).invoke(ask(), watched(memory, run_id=run_id))
    assert [episode.id for episode in memory.pending()] == [str(run_id)]
    assert memory.reward(run_id=run_id, value=1.0) is not None, "the solution was kept for whoever judges later"


async def test_an_asynchronous_run_is_rewarded_as_well_even_by_an_asynchronous_function(make: Make):
    async def judge(episode: Episode) -> bool:
        await asyncio.sleep(0.01)
        return "5" in episode.answer

    memory = make(reward_fn=judge)
    await solver(memory).ainvoke(ask(), watched(memory))
    assert rewards(memory) == [1.0]
    assert_clean(memory)


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom", "debug"])
def test_a_streamed_run_ends_like_any_other(judged: CascadeMemory, mode: Any):
    list(solver(judged).stream(ask(), watched(judged), stream_mode=mode))
    assert rewards(judged) == [1.0]
    assert_clean(judged)


async def test_a_run_streamed_asynchronously_ends_like_any_other(judged: CascadeMemory):
    [one async for one in solver(judged).astream_events(ask(), watched(judged))]
    assert rewards(judged) == [1.0]
    assert_clean(judged)


async def test_every_input_of_a_batch_is_an_episode_of_its_own(judged: CascadeMemory):
    solver(judged).batch([ask(), ask(), ask()], watched(judged))
    await solver(judged).abatch([ask(), ask()], watched(judged))
    assert rewards(judged) == [1.0] * 5
    assert_clean(judged)


def test_runs_on_many_threads_do_not_mix(judged: CascadeMemory):
    agent = solver(judged)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: agent.invoke(ask(), watched(judged)), range(24)))
    assert rewards(judged) == [1.0] * 24
    assert judged.stats().recalls == 24
    assert_clean(judged)


def test_the_same_handler_attached_twice_pays_once(judged: CascadeMemory):
    agent = solver(judged).with_config(callbacks=[judged.callback])
    agent.invoke(ask(), watched(judged))
    assert rewards(judged) == [1.0]
    assert_clean(judged)


def test_a_run_announced_twice_keeps_what_happened_in_between(judged: CascadeMemory):
    run_id = uuid.uuid4()
    judged.callback.on_chain_start({}, {}, run_id=run_id)
    recall = judged.engine.recall("2 + 3", episode_id=judged.callback.join(run_id, {}).episode_id)
    judged.callback.on_chain_start({}, {}, run_id=run_id)
    judged.callback.on_chain_end({"output": "5"}, run_id=run_id)
    judged.callback.on_chain_end({"output": "4"}, run_id=run_id)
    assert judged.engine.get_episode(recall.episode_id).reward == 1.0
    assert_clean(judged)


def test_several_recalls_in_one_run_are_one_episode(judged: CascadeMemory):
    script = model(call("recall_cases", query="2 + 3"), call("recall_cases", query="sums"), "It is 5.")
    create_agent(script, [judged.tool()]).invoke(ask(), watched(judged))
    assert rewards(judged) == [1.0]
    assert judged.stats().recalls == 2


def test_recalls_of_a_subagent_belong_to_the_outermost_run(judged: CascadeMemory):
    inner = create_agent(model(call("recall_cases", query="2 + 3"), "five"), [judged.tool()])

    @tool
    def delegate(task: str) -> str:
        """Ask another agent."""
        return inner.invoke(ask(task))["messages"][-1].text

    outer = create_agent(model(call("delegate", task="2 + 3"), "It is 5."), [delegate])
    outer.invoke(ask(), watched(judged))
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == 1
    assert_clean(judged)


def test_a_sequence_around_the_agent_is_the_run_that_counts(judged: CascadeMemory):
    chain = solver(judged) | RunnableLambda(lambda state: f"final: {state['messages'][-1].text}")
    assert chain.invoke(ask(), watched(judged)) == "final: It is 5."
    assert rewards(judged) == [1.0]
    assert judged.engine.recall("2 + 3").cases[0].solution.answer == "final: It is 5."


# -- runs that do not end well -------------------------------------------------------------------------------------------


def failing(memory: CascadeMemory, *script: Any, tools: Any = ()) -> Any:
    return create_agent(model(call("recall_cases", query="2 + 3"), *script), [memory.tool(), *tools])


def test_a_tool_that_raises_reaches_the_caller_and_the_episode_is_censored(judged: CascadeMemory):
    with pytest.raises(RuntimeError, match="the tool exploded"):
        failing(judged, call("explode"), tools=[explode]).invoke(ask(), watched(judged))
    assert rewards(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


def test_the_reward_function_sees_that_a_run_failed_and_may_judge(make: Make):
    seen: list[Episode] = []

    def judge(episode: Episode) -> float | None:
        seen.append(episode)
        return 0.0 if episode.status == "error" else None

    memory = make(reward_fn=judge)
    with pytest.raises(ValueError, match="no model"):
        failing(memory, ValueError("no model")).invoke(ask(), watched(memory))
    assert [episode.status for episode in seen] == ["error"]
    assert rewards(memory) == [0.0]


def test_a_runaway_agent_is_an_error(judged: CascadeMemory):
    agent = create_agent(model(call("recall_cases", query="2 + 3")), [judged.tool()])
    with pytest.raises(GraphRecursionError):
        agent.invoke(ask(), watched(judged, recursion_limit=6))
    assert judged.stats().censored == 1
    assert_clean(judged)


@pytest.fixture
def harsh(make: Make) -> CascadeMemory:
    """Judges everything that it is asked about as a failure."""
    return make(reward_fn=lambda _: 0.0)


def test_a_stream_thrown_away_is_censored_not_counted_as_failure(harsh: CascadeMemory):
    judged = harsh
    stream = solver(judged).stream(ask(), watched(judged), stream_mode="updates")
    for update in stream:
        if "tools" in update:
            break
    stream.close()
    assert rewards(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


async def test_a_cancelled_run_is_censored(harsh: CascadeMemory):
    judged = harsh
    waiting = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait forever."""
        waiting.set()
        await asyncio.sleep(60)
        return "never"

    agent = failing(judged, call("wait"), tools=[wait])
    task = asyncio.create_task(agent.ainvoke(ask(), watched(judged)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rewards(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


def test_an_error_of_the_memory_never_reaches_the_agent(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(judged.engine, "end", broken)
    result = solver(judged).invoke(ask(), watched(judged))
    assert result["messages"][-1].text == "It is 5."
    assert judged.health().failures == {"callback": 1}


def test_a_reward_function_that_raises_is_counted_and_the_episode_stays_pending(make: Make):
    def judge(_: Episode) -> float:
        raise KeyError("gold")

    memory = make(reward_fn=judge)
    solver(memory).invoke(ask(), watched(memory))
    assert len(memory.pending()) == 1
    assert memory.pending()[0].answer == "It is 5."
    assert memory.health().failures == {"callback": 1}


def test_a_tool_that_failed_is_a_failed_step_and_what_it_shouted_is_cleaned(make: Make):
    seen: list[Episode] = []
    memory = make(reward_fn=lambda episode: seen.append(episode))

    @tool
    def shout() -> str:
        """Fail loudly."""
        raise RuntimeError("\x1b[31mno\x00 way")

    def chain(question: str) -> str:
        memory.invoke(question)
        try:
            shout.invoke({})
        except RuntimeError:
            return "gave up"
        return "fine"

    RunnableLambda(chain).invoke("q", watched(memory))
    (step,) = seen[0].solution.steps
    assert (step.tool, step.observation, step.failed) == ("shout", "RuntimeError: no way", True)
    assert_clean(memory)


# -- runs that are hard to follow ----------------------------------------------------------------------------------------


def test_a_parent_run_that_nobody_announced_is_no_root(judged: CascadeMemory):
    """LangSmith's @traceable around a call gives the root a parent that the handler never saw."""
    handler, agent = judged.callback, solver(judged)
    from langchain_core.callbacks import CallbackManager

    foreign = CallbackManager([handler], inheritable_handlers=[handler], parent_run_id=uuid.uuid4())
    agent.invoke(ask(), {"callbacks": foreign})
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == 1
    assert_clean(judged)


def test_a_traceable_parent_and_traced_middleware_keep_the_episode_together(
    judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch
):
    from langsmith import traceable, tracing_context
    from langsmith.run_helpers import get_current_run_tree

    @wrap_model_call
    def passed_on(request: Any, handler: Any) -> Any:
        return handler(request)

    script = model(call("recall_cases", query="2 + 3"), "It is 5.")
    agent = create_agent(script, [judged.tool()], middleware=[passed_on])

    @traceable
    def work() -> Any:
        assert get_current_run_tree() is not None
        return agent.invoke(ask(), watched(judged))

    class Nowhere:
        """Takes the place of LangSmith's client: nothing leaves the machine."""

        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: None

    with tracing_context(enabled=True, client=Nowhere()):  # type: ignore[arg-type]
        work()
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == 1
    assert judged.callback.open_runs == 0


def test_a_stray_run_is_attached_by_its_thread_only_if_that_leaves_no_doubt(judged: CascadeMemory):
    handler = judged.callback
    first, second = uuid.uuid4(), uuid.uuid4()
    handler.on_chain_start({}, {}, run_id=first, metadata={"thread_id": "a"})
    handler.on_chain_start({}, {}, run_id=second, metadata={"thread_id": "a"})
    assert handler.join(uuid.uuid4(), {"thread_id": "a"}) is None, "two runs: never guess"
    assert handler.join(uuid.uuid4(), {}) is None
    handler.on_chain_end({}, run_id=second)
    found = handler.join(uuid.uuid4(), {"thread_id": "a"})
    assert found is not None
    assert found.run_id == first
    handler.on_chain_end({}, run_id=first)


@pytest.mark.parametrize("how", ["thread", "pool"])
def test_a_recall_on_a_raw_thread_joins_when_told_to_and_else_stands_alone(judged: CascadeMemory, how: str):
    def elsewhere(call: Callable[[], Any]) -> Any:
        if how == "pool":
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(call).result()
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(call()))
        thread.start()
        thread.join()
        return found[0]

    judged.add("2 + 3", "five")

    def chain(_: Any, config: Any) -> str:
        alone = elsewhere(lambda: judged.invoke("2 + 3"))[0]
        told = elsewhere(lambda: judged.invoke("2 + 3", config))[0]
        return f"5 {alone.metadata['cascade_episode_id']} {told.metadata['cascade_episode_id']}"

    run_id = uuid.uuid4()
    _, alone, told = RunnableLambda(chain).invoke("q", watched(judged, run_id=run_id)).split()
    assert told == str(run_id)
    assert alone != told
    assert rewards(judged) == [1.0]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="LangChain passes no context to asynchronous code before Python 3.11")
async def test_a_recall_through_to_thread_belongs_to_the_run(judged: CascadeMemory):
    judged.add("2 + 3", "five")

    async def chain(_: Any) -> str:
        found = await asyncio.to_thread(judged.invoke, "2 + 3")
        return f"5 {found[0].metadata['cascade_episode_id']}"

    run_id = uuid.uuid4()
    answer = await RunnableLambda(chain).ainvoke("q", watched(judged, run_id=run_id))
    assert answer == f"5 {run_id}"


def test_a_handler_on_the_model_alone_sees_no_run_and_the_recall_stays_pending(judged: CascadeMemory):
    script = model(call("recall_cases", query="2 + 3"), "It is 5.")
    script.callbacks = [judged.callback]
    create_agent(script, [judged.tool()]).invoke(ask())
    assert rewards(judged) == []
    assert len(judged.pending()) == 1


def test_an_attached_handler_follows_every_run_of_the_context(judged: CascadeMemory):
    agent = solver(judged)
    with judged.attach():
        agent.invoke(ask())
        agent.invoke(ask(), watched(judged))
    agent.invoke(ask())
    assert rewards(judged) == [1.0, 1.0]
    assert len(judged.pending()) == 1
    attached = judged.attach()
    agent.invoke(ask())
    attached.detach()
    attached.detach()
    assert rewards(judged) == [1.0] * 3


def test_a_block_gathers_the_runs_inside_into_one_episode_and_takes_their_solution(judged: CascadeMemory):
    agent = solver(judged)
    with judged.episode("what is 2 + 3?") as episode:
        agent.invoke(ask())
    assert judged.stats().episodes == 1
    assert rewards(judged) == [1.0]
    assert judged.engine.get_episode(episode.id).answer == "It is 5."
    with pytest.raises(RuntimeError, match="exploded"), judged.episode("what is 3 + 3?"):
        failing(judged, call("explode"), tools=[explode]).invoke(ask())
    assert judged.stats().censored == 1
    assert_clean(judged)


async def test_a_block_around_an_asynchronous_run_finds_the_solution_when_it_ends(judged: CascadeMemory):
    with judged.episode("what is 2 + 3?"):
        await solver(judged).ainvoke(ask())
    assert rewards(judged) == [1.0]


def test_a_run_without_a_recall_is_no_episode(judged: CascadeMemory):
    create_agent(model("It is 5."), []).invoke(ask(), watched(judged))
    assert judged.stats().episodes == 0


async def test_a_slow_judge_does_not_hold_up_the_event_loop(make: Make):
    def judge(_: Episode) -> float:
        time.sleep(0.3)
        return 1.0

    memory = make(reward_fn=judge)
    began = time.perf_counter()
    await asyncio.gather(*(solver(memory).ainvoke(ask(), watched(memory)) for _ in range(4)))
    blocked = time.perf_counter() - began
    assert rewards(memory) == [1.0] * 4
    assert blocked < 0.3 * 4, "four verdicts one after the other would have taken longer"


def test_other_handlers_see_the_same_events(judged: CascadeMemory):
    class Counter(BaseCallbackHandler):
        ends = 0

        def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any) -> None:
            self.ends += parent_run_id is None

    counter = Counter()
    solver(judged).invoke(ask(), {"callbacks": [judged.callback, counter]})
    assert counter.ends == 1
    assert rewards(judged) == [1.0]
