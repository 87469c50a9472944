"""Strange parents, raw threads, blocks and handlers of the context: which run a recall belongs to."""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from adding_agents import adding, ask, assert_clean, explode, failing, paid, watched
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.runnables import RunnableLambda
from scripted import call, model

from cascade_memory.langchain import CascadeMemory


def test_a_parent_run_that_nobody_announced_is_no_root(judged: CascadeMemory):
    """LangSmith's @traceable around a call gives the root a parent that the handler never saw."""
    handler, agent = judged.callback, adding(judged)
    from langchain_core.callbacks import CallbackManager

    foreign = CallbackManager([handler], inheritable_handlers=[handler], parent_run_id=uuid.uuid4())
    agent.invoke(ask(), {"callbacks": foreign})
    assert paid(judged) == [1.0]
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
    assert paid(judged) == [1.0]
    assert judged.stats().episodes == 1
    assert judged.callback.open_runs == 0


def test_a_stray_run_is_attached_by_its_thread_only_if_that_leaves_no_doubt(judged: CascadeMemory):
    handler = judged.callback
    first, second = uuid.uuid4(), uuid.uuid4()
    handler.on_chain_start({}, {}, run_id=first, metadata={"thread_id": "a"})
    handler.on_chain_start({}, {}, run_id=second, metadata={"thread_id": "a"})
    assert handler.runs.join(uuid.uuid4(), {"thread_id": "a"}) is None, "two runs: never guess"
    assert handler.runs.join(uuid.uuid4(), {}) is None
    handler.on_chain_end({}, run_id=second)
    found = handler.runs.join(uuid.uuid4(), {"thread_id": "a"})
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
    assert paid(judged) == [1.0]


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
    assert paid(judged) == []
    assert len(judged.episodes.pending()) == 1


def test_an_attached_handler_follows_every_run_of_the_context(judged: CascadeMemory):
    agent = adding(judged)
    with judged.attach():
        agent.invoke(ask())
        agent.invoke(ask(), watched(judged))
    agent.invoke(ask())
    assert paid(judged) == [1.0, 1.0]
    assert len(judged.episodes.pending()) == 1
    attached = judged.attach()
    agent.invoke(ask())
    attached.detach()
    attached.detach()
    assert paid(judged) == [1.0] * 3


def test_a_block_gathers_the_runs_inside_into_one_episode_and_takes_their_solution(judged: CascadeMemory):
    agent = adding(judged)
    with judged.episode("what is 2 + 3?") as episode:
        agent.invoke(ask())
    assert judged.stats().episodes == 1
    assert paid(judged) == [1.0]
    assert judged.engine.episodes.get(episode.id).answer == "It is 5."
    with pytest.raises(RuntimeError, match="exploded"), judged.episode("what is 3 + 3?"):
        failing(judged, call("explode"), tools=[explode]).invoke(ask())
    assert judged.stats().censored == 1
    assert_clean(judged)


async def test_a_block_around_an_asynchronous_run_finds_the_solution_when_it_ends(judged: CascadeMemory):
    with judged.episode("what is 2 + 3?"):
        await adding(judged).ainvoke(ask())
    assert paid(judged) == [1.0]
