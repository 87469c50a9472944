"""What the end of a run says is learned, and nothing else; failing, the memory stands in nobody's way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from inside import engine_of
from llama_agents import ADDING, TASK, add, function_agent, only_episode, with_block
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from workflows.errors import WorkflowCancelledByUser, WorkflowRuntimeError, WorkflowTimeoutError


async def test_an_error_is_the_agents_own_and_says_nothing_of_the_case(memory):
    memory.install()
    asked = ("recall_cases", {"query": "2 + 3"})
    with pytest.raises(Exception, match="no model"):
        await function_agent(asked, RuntimeError("no model"), tools=(memory.tool(),)).run(TASK)
    assert (only_episode(memory).status, memory.engine.episodes.rewards()) == ("censored", [])


async def test_an_error_may_be_judged(make):
    memory = make(reward_fn=lambda episode: 0.0 if episode.status == "error" else 1.0).install()
    asked = ("recall_cases", {"query": "2 + 3"})
    with pytest.raises(Exception, match="no model"):
        await function_agent(asked, RuntimeError("no model"), tools=(memory.tool(),)).run(TASK)
    assert only_episode(memory).reward == 0.0


async def test_running_out_of_time_is_an_error(memory):
    async def hang() -> str:
        """Take longer than anybody waits."""
        await asyncio.sleep(60)
        return "late"

    memory.install()
    script = (("recall_cases", {"query": "2 + 3"}), ("hang", {}), "5")
    agent = function_agent(*script, tools=(memory.tool(), hang), timeout=3.0)
    with pytest.raises(WorkflowTimeoutError):
        await agent.run(TASK)
    assert (only_episode(memory).status, memory.engine.episodes.rewards()) == ("censored", [])


async def test_running_out_of_steps_is_an_error(memory):
    memory.install()
    agent = function_agent(("recall_cases", {"query": "2 + 3"}), ADDING, ADDING, ADDING, tools=(memory.tool(), add))
    with pytest.raises(WorkflowRuntimeError, match="Max iterations"):
        await agent.run(TASK, max_iterations=3)
    assert (only_episode(memory).status, memory.engine.episodes.rewards()) == ("censored", [])


async def test_a_cancelled_run_is_censored_even_if_errors_are_judged(make):
    memory = make(reward_fn=lambda episode: 0.0).install()
    agent = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),), pause=0.1)
    handler = agent.run(TASK)
    while not memory.episodes.pending():
        await asyncio.sleep(0.02)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert (only_episode(memory).status, memory.engine.episodes.rewards()) == ("censored", [])


async def test_a_failing_tool_is_a_failed_step_of_a_run_that_went_on(memory):
    def divide(a: int, b: int) -> float:
        """Divide."""
        return a / b

    memory.install()
    script = (("recall_cases", {"query": "2 + 3"}), ("divide", {"a": 1, "b": 0}), ADDING, "It is 5.")
    await function_agent(*script, tools=(memory.tool(), divide, add)).run(TASK)
    steps = only_episode(memory).solution.steps
    assert [(one.tool, one.failed) for one in steps] == [("divide", True), ("add", False)]


async def test_a_run_that_waits_for_somebody_goes_on_with_its_episode(memory):
    async def confirm(ctx: Context, query: str) -> str:
        """Ask a person whether to go on."""
        await memory.aretrieve(query)
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Sure?"))
        return answer.response

    memory.install()
    confirm.__annotations__["ctx"] = Context  # as it is where annotations are not postponed: LlamaIndex does not resolve them
    tool = FunctionTool.from_defaults(async_fn=confirm)
    handler = function_agent(("confirm", {"query": "2 + 3"}), "It is 5.", tools=(tool,)).run(TASK)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            assert memory.episodes.pending()
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    episode = only_episode(memory)
    assert (episode.reward, episode.recalls) == (1.0, 1), "the tool ran twice, and recalled once"


async def test_without_a_verdict_the_episode_keeps_its_solution_for_a_later_reward(make):
    memory = make().install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), ADDING, "5", tools=(memory.tool(), add)).run(TASK)
    (episode,) = memory.episodes.pending()
    assert (episode.ended, episode.answer) == ("ok", "5")
    assert memory.reward(episode.id, 1.0) is not None


async def test_runs_that_recall_nothing_leave_nothing(memory):
    memory.install()
    await function_agent(ADDING, "5").run(TASK)
    memory.sync()
    assert memory.stats().episodes == 0
    assert memory.open_runs == 0


async def test_a_memory_that_fails_does_not_stop_the_agent(memory, monkeypatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("disk on fire")

    memory.install()
    monkeypatch.setattr(engine_of(memory).parts.ledger, "record", broken)
    with pytest.warns(RuntimeWarning, match="disk on fire"):
        answer = await function_agent(ADDING, "It is 5.").run(TASK, memory=with_block(memory))
    assert str(answer) == "It is 5."
    assert memory.health().failures["record"] == 1


async def test_a_verdict_that_fails_is_counted(make):
    memory = make(reward_fn=lambda episode: 1 / 0).install()
    answer = await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    memory.sync()
    assert str(answer) == "5"
    assert memory.health().failures
    assert memory.episodes.pending()[0].answer == "5"


async def test_a_slow_verdict_does_not_hold_up_the_loop(make):
    over = threading.Event()
    memory = make(reward_fn=lambda episode: float(over.wait(20))).install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    over.set()  # the run ends before its verdict
    memory.sync()
    assert only_episode(memory).reward == 1.0


async def test_a_solution_that_cannot_be_told_is_not_a_failure(memory, monkeypatch):
    def broken(*_: Any) -> Any:
        raise ValueError("unreadable")

    monkeypatch.setattr("cascade_memory.llama_index.instrumentation.solution_in", broken)
    memory.install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await memory.arun(function_agent("5"), TASK)
    memory.sync()
    assert [one.ended for one in memory.episodes.pending()] == ["ok", "ok"]
    assert memory.health().failures["callback"] == 2


async def test_a_recall_after_the_reward_is_an_episode_that_ends_as_well(memory):
    async def look(query: str) -> str:
        """Look."""
        for text in (query, query + "!"):
            node = (await memory.aretrieve(text))[0]
            if text == query:
                memory.reward(node.metadata["cascade_episode_id"], 1.0)
        return "looked"

    memory.install()
    await function_agent(("look", {"query": "2 + 3"}), "5", tools=(FunctionTool.from_defaults(async_fn=look),)).run(TASK)
    memory.sync()
    assert (memory.stats().rewards, memory.stats().open) == (2, 0)
