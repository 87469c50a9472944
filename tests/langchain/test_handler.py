"""The callback handler: every recall on the episode of its outermost run, closed once when that ends."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from adding_agents import adding, ask, assert_clean, paid, watched
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from scripted import call, model

from cascade_memory import Episode, Trajectory
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


def test_a_run_is_rewarded_once_when_it_ends_and_its_trajectory_is_kept(judged: CascadeMemory):
    adding(judged).invoke(ask(), watched(judged))
    assert paid(judged) == [1.0]
    case = judged.engine.recall("2 + 3").cases[0]
    assert isinstance(case.solution, Trajectory)
    assert [(step.thought, step.action, step.observation) for step in case.solution.steps] == [
        ("I add them.", 'add({"a": 2, "b": 3})', "5")
    ]
    assert case.solution.answer == "It is 5."
    assert_clean(judged)


def test_the_episode_has_the_id_of_the_run_so_that_feedback_by_run_id_finds_it(memory: CascadeMemory):
    run_id = uuid.uuid4()
    adding(memory).invoke(ask(), watched(memory, run_id=run_id))
    assert [episode.id for episode in memory.episodes.pending()] == [str(run_id)]
    assert memory.reward(run_id=run_id, value=1.0) is not None, "the solution was kept for whoever judges later"


async def test_an_asynchronous_run_is_rewarded_as_well_even_by_an_asynchronous_function(make: Make):
    async def judge(episode: Episode) -> bool:
        await asyncio.sleep(0.01)
        return "5" in episode.answer

    memory = make(reward_fn=judge)
    await adding(memory).ainvoke(ask(), watched(memory))
    assert paid(memory) == [1.0]
    assert_clean(memory)


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom", "debug"])
def test_a_streamed_run_ends_like_any_other(judged: CascadeMemory, mode: Any):
    list(adding(judged).stream(ask(), watched(judged), stream_mode=mode))
    assert paid(judged) == [1.0]
    assert_clean(judged)


async def test_a_run_streamed_asynchronously_ends_like_any_other(judged: CascadeMemory):
    [one async for one in adding(judged).astream_events(ask(), watched(judged))]
    assert paid(judged) == [1.0]
    assert_clean(judged)


async def test_every_input_of_a_batch_is_an_episode_of_its_own(judged: CascadeMemory):
    adding(judged).batch([ask(), ask(), ask()], watched(judged))
    await adding(judged).abatch([ask(), ask()], watched(judged))
    assert paid(judged) == [1.0] * 5
    assert_clean(judged)


def test_runs_on_many_threads_do_not_mix(judged: CascadeMemory):
    agent = adding(judged)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: agent.invoke(ask(), watched(judged)), range(24)))
    assert paid(judged) == [1.0] * 24
    assert judged.stats().recalls == 24
    assert_clean(judged)


def test_the_same_handler_attached_twice_pays_once(judged: CascadeMemory):
    agent = adding(judged).with_config(callbacks=[judged.callback])
    agent.invoke(ask(), watched(judged))
    assert paid(judged) == [1.0]
    assert_clean(judged)


def test_a_run_announced_twice_keeps_what_happened_in_between(judged: CascadeMemory):
    run_id = uuid.uuid4()
    judged.callback.on_chain_start({}, {}, run_id=run_id)
    recall = judged.engine.recall("2 + 3", episode_id=judged.callback.runs.join(run_id, {}).episode_id)
    judged.callback.on_chain_start({}, {}, run_id=run_id)
    judged.callback.on_chain_end({"output": "5"}, run_id=run_id)
    judged.callback.on_chain_end({"output": "4"}, run_id=run_id)
    assert judged.engine.episodes.get(recall.episode_id).reward == 1.0
    assert_clean(judged)


def test_several_recalls_in_one_run_are_one_episode(judged: CascadeMemory):
    script = model(call("recall_cases", query="2 + 3"), call("recall_cases", query="sums"), "It is 5.")
    create_agent(script, [judged.tool()]).invoke(ask(), watched(judged))
    assert paid(judged) == [1.0]
    assert judged.stats().recalls == 2


def test_recalls_of_a_subagent_belong_to_the_outermost_run(judged: CascadeMemory):
    inner = create_agent(model(call("recall_cases", query="2 + 3"), "five"), [judged.tool()])

    @tool
    def delegate(task: str) -> str:
        """Ask another agent."""
        return inner.invoke(ask(task))["messages"][-1].text

    outer = create_agent(model(call("delegate", task="2 + 3"), "It is 5."), [delegate])
    outer.invoke(ask(), watched(judged))
    assert paid(judged) == [1.0]
    assert judged.stats().episodes == 1
    assert_clean(judged)


def test_a_sequence_around_the_agent_is_the_run_that_counts(judged: CascadeMemory):
    chain = adding(judged) | RunnableLambda(lambda state: f"final: {state['messages'][-1].text}")
    assert chain.invoke(ask(), watched(judged)) == "final: It is 5."
    assert paid(judged) == [1.0]
    assert judged.engine.recall("2 + 3").cases[0].solution.answer == "final: It is 5."


def test_a_run_without_a_recall_is_no_episode(judged: CascadeMemory):
    create_agent(model("It is 5."), []).invoke(ask(), watched(judged))
    assert judged.stats().episodes == 0


async def test_a_slow_judge_does_not_hold_up_the_event_loop(make: Make):
    both = threading.Barrier(2, timeout=20)  # one verdict after the other would break it

    def judge(_: Episode) -> float:
        both.wait()
        return 1.0

    memory = make(reward_fn=judge)
    await asyncio.gather(*(adding(memory).ainvoke(ask(), watched(memory)) for _ in range(4)))
    assert paid(memory) == [1.0] * 4


def test_other_handlers_see_the_same_events(judged: CascadeMemory):
    class Counter(BaseCallbackHandler):
        ends = 0

        def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any) -> None:
            self.ends += parent_run_id is None

    counter = Counter()
    adding(judged).invoke(ask(), {"callbacks": [judged.callback, counter]})
    assert counter.ends == 1
    assert paid(judged) == [1.0]
