"""The hosts themselves: OpenTelemetry's and LangSmith's own packages, and agents of LangChain below them. Nothing is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any
from unittest.mock import MagicMock

import pytest

from cascade_memory import CascadeMemory


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline", reward_fn=lambda episode: None) as memory:
        yield memory


def is_settled(memory: Any, episode: str) -> bool:
    found = memory.episodes.get(episode)
    return found is not None and found.status == "settled"


# -- OpenTelemetry -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tracer() -> Any:
    return pytest.importorskip("opentelemetry.sdk.trace").TracerProvider().get_tracer("tests")


def _ids(span: Any) -> dict[str, str]:
    from opentelemetry import trace

    now = span.get_span_context()
    return {"trace_id": trace.format_trace_id(now.trace_id), "span_id": trace.format_span_id(now.span_id)}


@pytest.mark.parametrize("judged", ["root", "above", "recalling", "below"])
def test_a_verdict_on_any_span_of_the_trace_finds_the_episode(memory: CascadeMemory, tracer: Any, judged: str):
    current = tracer.start_as_current_span
    with current("root") as root, current("above") as above, current("recalling") as recalling:
        episode = memory.recall("cool some mug").episode_id
        with current("below") as below:
            spans = {"root": _ids(root), "above": _ids(above), "recalling": _ids(recalling), "below": _ids(below)}
    assert [one.span_id for one in memory.traces.of(episode)] == [spans["recalling"]["span_id"]]
    memory.reward(**spans[judged], value=1.0, solution="put it into the fridge")
    assert is_settled(memory, episode)


def test_a_recall_after_a_span_notes_nothing(memory: CascadeMemory, tracer: Any):
    with tracer.start_as_current_span("over"):
        pass
    assert memory.traces.of(memory.recall("cool some mug").episode_id) == []
    assert memory.health().ok


def test_a_remote_span_without_any_sdk_is_noted(memory: CascadeMemory):
    trace = pytest.importorskip("opentelemetry.trace")
    context = pytest.importorskip("opentelemetry.context")
    here = trace.SpanContext(trace_id=0x4BF92F3577B34DA6A3CE929D0E0E4736, span_id=0xF067AA0BA902B7, is_remote=True)
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(here)))
    try:
        episode = memory.recall("cool some mug").episode_id
    finally:
        context.detach(token)
    assert [one.span_id for one in memory.traces.of(episode)] == ["00f067aa0ba902b7"]


def test_the_span_is_that_of_the_caller_where_the_recall_runs_on_another_thread(tracer: Any):
    class Slow:
        """An embedder of somebody else, which may hang: a recall with a deadline asks it on another thread."""

        identity, dimension = "slow", 2

        def embed(self, texts: Any) -> Any:
            import numpy as np

            asked.add(threading.get_ident())
            return np.ones((len(texts), 2), np.float32)

    asked: set[int] = set()
    with CascadeMemory(embedder=Slow(), deadline=30.0) as memory, tracer.start_as_current_span("root") as root:
        episode = memory.recall("cool some mug", where={"user": "ann"}).episode_id
        assert asked != {threading.get_ident()}
        assert [one.span_id for one in memory.traces.of(episode)] == [_ids(root)["span_id"]]

        async def awaited() -> str:
            return (await memory.arecall("cool some cup")).episode_id

        assert [one.span_id for one in memory.traces.of(asyncio.run(awaited()))] == [_ids(root)["span_id"]]


def test_two_threads_at_once_note_a_span_each(memory: CascadeMemory, tracer: Any):
    both = threading.Barrier(2)

    def asked(number: int) -> tuple[str, str]:
        with tracer.start_as_current_span(f"root {number}") as root:
            both.wait()
            return memory.recall(f"task {number}").episode_id, _ids(root)["trace_id"]

    with ThreadPoolExecutor(2) as pool:
        for episode, trace in pool.map(asked, range(2)):
            assert [one.id for one in memory.traces.episodes(trace)] == [episode]


# -- LangSmith -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def nowhere() -> Any:
    """A client of LangSmith whose requests go to a stand-in."""
    langsmith = pytest.importorskip("langsmith")
    return langsmith.Client(
        api_url="http://127.0.0.1:9", api_key="none", session=MagicMock(), auto_batch_tracing=False, info={}
    )


@pytest.mark.parametrize("judged", ["root", "recalling"])
def test_feedback_on_any_run_of_the_trace_finds_the_episode(memory: CascadeMemory, nowhere: Any, judged: str):
    from langsmith import traceable, tracing_context
    from langsmith.run_helpers import get_current_run_tree

    runs: dict[str, Any] = {}

    @traceable
    def agent(task: str) -> str:
        runs["root"] = get_current_run_tree()
        return step(task)

    @traceable
    def step(task: str) -> str:
        runs["recalling"] = get_current_run_tree()
        return memory.recall(task).episode_id

    with tracing_context(enabled=True, client=nowhere):
        episode = agent("cool some mug")
    (noted,) = memory.traces.of(episode)
    assert (noted.host, noted.trace_id) == ("langsmith", str(runs["root"].id))
    assert noted.span_id == str(runs["recalling"].id)
    memory.reward(trace_id=str(runs[judged].trace_id), span_id=str(runs[judged].id), value=0.0)
    assert is_settled(memory, episode)
    assert memory.health().ok


def test_what_is_not_traced_notes_nothing(memory: CascadeMemory):
    langsmith = pytest.importorskip("langsmith")

    @langsmith.traceable
    def agent(task: str) -> str:
        return memory.recall(task).episode_id

    with langsmith.tracing_context(enabled=False):
        assert memory.traces.of(agent("cool some mug")) == []


# -- agents of LangChain -------------------------------------------------------------------------------------------------


def _answering() -> Any:
    from langchain_core.language_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage

    return FakeMessagesListChatModel(responses=[AIMessage("put it into the fridge")])


def _agent(memory: CascadeMemory) -> Any:
    pytest.importorskip("langchain.agents")
    from langchain.agents import create_agent

    from cascade_memory.langchain import CascadeMemory as OfLangChain

    return create_agent(_answering(), middleware=[OfLangChain(engine=memory).middleware()])


_ASKED: dict[str, Any] = {"messages": [("user", "cool some mug")]}


@pytest.mark.parametrize("awaited", [False, True])
def test_the_middleware_notes_the_run_of_langsmith(memory: CascadeMemory, nowhere: Any, awaited: bool):
    tracing = pytest.importorskip("langchain_core.tracers.langchain").LangChainTracer(client=nowhere)
    agent, config = _agent(memory), {"callbacks": [tracing]}
    result = asyncio.run(agent.ainvoke(_ASKED, config)) if awaited else agent.invoke(_ASKED, config)
    episode = result["cascade_episode_id"]
    (noted,) = memory.traces.of(episode)
    assert (noted.host, noted.trace_id) == ("langsmith", str(tracing.latest_run.id))
    assert noted.span_id != noted.trace_id  # that of its node
    memory.reward(trace_id=noted.trace_id, span_id=noted.trace_id, value=1.0)
    assert is_settled(memory, episode)


@pytest.mark.parametrize("awaited", [False, True])
def test_the_middleware_notes_the_span_around_the_agent(memory: CascadeMemory, tracer: Any, awaited: bool):
    agent = _agent(memory)
    with tracer.start_as_current_span("request") as root:
        result = asyncio.run(agent.ainvoke(_ASKED)) if awaited else agent.invoke(_ASKED)
    assert [one.span_id for one in memory.traces.of(result["cascade_episode_id"])] == [_ids(root)["span_id"]]


@pytest.mark.parametrize("awaited", [False, True])
def test_the_retriever_in_a_chain_notes_the_run_of_the_chain(memory: CascadeMemory, nowhere: Any, awaited: bool):
    tracing = pytest.importorskip("langchain_core.tracers.langchain").LangChainTracer(client=nowhere)
    from langchain_core.runnables import RunnableLambda

    from cascade_memory.langchain import CascadeMemory as OfLangChain

    chain: Any = RunnableLambda(str.strip) | OfLangChain(engine=memory)
    asyncio.run(chain.ainvoke("heat egg", {"callbacks": [tracing]})) if awaited else chain.invoke(
        "heat egg", {"callbacks": [tracing]}
    )
    (episode,) = memory.traces.episodes(str(tracing.latest_run.id))
    assert episode.query == "heat egg"


# -- agents of LlamaIndex ------------------------------------------------------------------------------------------------


def test_the_retriever_of_llama_index_notes_the_span_around_it(memory: CascadeMemory, tracer: Any):
    pytest.importorskip("llama_index.core")
    from cascade_memory.llama_index import CascadeMemory as OfLlamaIndex

    retriever = OfLlamaIndex(engine=memory)
    for asked in (lambda: retriever.retrieve("cool some mug"), lambda: asyncio.run(retriever.aretrieve("cool some mug"))):
        with tracer.start_as_current_span("request") as root:
            copy_context().run(asked)
        assert len(memory.traces.episodes(_ids(root)["trace_id"])) == 1
