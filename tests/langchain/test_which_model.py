"""An episode has the name of the model that wrote the final answer, whichever hook ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("langgraph")

from inside import stored_signal
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.language_models import BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, Generation, LLMResult
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from scripted import ScriptedModel, call, model

TASK = {"messages": [{"role": "user", "content": "what is 2 + 3, please?"}]}


def said(text: str, name: str | None, key: str = "model_name") -> AIMessage:
    return AIMessage(text, response_metadata={} if name is None else {key: name})


def named(message: AIMessage, name: str) -> AIMessage:
    return message.model_copy(update={"response_metadata": {"model_name": name}})


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Streaming(ScriptedModel):
    """Streams its answer word by word, with its name in each chunk."""

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for word in ("it ", "is ", "5"):
            yield ChatGenerationChunk(message=AIMessageChunk(word, response_metadata={"model_name": "writer-2"}))


def models_of(memory: Any) -> list[Any]:
    memory.sync()
    return [one.metadata.get("model") for one in memory.episodes.all()]


@pytest.mark.parametrize("key", ["model_name", "model", "model_id"])
def test_an_agents_episode_and_case_have_the_name_from_the_response(judged: Any, key: str):
    agent = create_agent(model(said("it is 5", "writer-2", key)), [], middleware=[judged.middleware()])
    agent.invoke(TASK)
    (case,) = judged.cases.all()
    assert case.metadata == {"model": "writer-2"}
    assert models_of(judged) == ["writer-2"]


def test_of_several_models_the_one_that_wrote_the_final_answer_counts(judged: Any):
    planner = model(named(call("add", a=2, b=3), "planner-1"))
    writer = model("", said("it is 5", "writer-2"))

    @wrap_model_call
    def route(request: Any, handler: Any) -> Any:
        worked = any(one.type == "tool" for one in request.messages)
        return handler(request.override(model=writer if worked else planner))

    create_agent(planner, [add], middleware=[judged.middleware(), route]).invoke(TASK)
    assert models_of(judged) == ["writer-2"]


def test_an_agent_inside_a_tool_does_not_count(judged: Any):
    inner = create_agent(model(said("5", "inner-3")), [])

    @tool
    def ask(question: str) -> str:
        """Ask another agent."""
        return inner.invoke({"messages": [("user", question)]})["messages"][-1].text

    outer = model(call("ask", question="2 + 3"), said("it is 5", None))
    create_agent(outer, [ask], middleware=[judged.middleware()]).invoke(TASK, {"callbacks": [judged.callback]})
    assert models_of(judged) == [None]


@pytest.mark.parametrize("watched", [False, True])
def test_a_run_without_a_name_stamps_nothing(judged: Any, watched: bool):
    agent = create_agent(model("it is 5"), [], middleware=[judged.middleware()])
    agent.invoke(TASK, {"callbacks": [judged.callback]} if watched else {})
    assert models_of(judged) == [None]
    assert judged.health().ok


def test_an_asynchronous_agent(judged: Any):
    agent = create_agent(model(said("it is 5", "writer-2")), [], middleware=[judged.middleware()])
    asyncio.run(agent.ainvoke(TASK))
    assert models_of(judged) == ["writer-2"]


def test_a_stream_that_repeats_the_name(judged: Any):
    agent = create_agent(Streaming(script=None), [], middleware=[judged.middleware()])
    assert list(agent.stream(TASK, stream_mode="messages"))
    assert models_of(judged) == ["writer-2"]


def test_a_field_of_the_users_own_stays(judged: Any):
    agent = create_agent(model(said("it is 5", "writer-2")), [], middleware=[judged.middleware()])
    agent.invoke(TASK, {"metadata": {"cascade_metadata": {"model": "Civic"}}})
    assert models_of(judged) == ["Civic"]


def test_a_solution_that_the_user_names_changes_nothing(always: Any):
    agent = create_agent(model(said("it is 5", "writer-2")), [], middleware=[always.middleware(solution=lambda state: "five")])
    agent.invoke(TASK)
    assert models_of(always) == ["writer-2"]


def test_a_chain_with_the_retriever(judged: Any):
    chain = judged | RunnableLambda(lambda found: "2 + 3?") | model(said("5", "writer-2"))
    chain.invoke("2 + 3", {"callbacks": [judged.callback]})
    assert models_of(judged) == ["writer-2"]


def test_a_model_without_chat(judged: Any):
    class Plain(BaseLLM):
        @property
        def _llm_type(self) -> str:
            return "plain"

        def _generate(self, prompts: Any, *_: Any, **__: Any) -> LLMResult:
            return LLMResult(generations=[[Generation(text="5")]], llm_output={"model_name": "plain-4"})

    chain = judged | RunnableLambda(lambda found: {}) | PromptTemplate.from_template("2 + 3?") | Plain()
    chain.invoke("2 + 3", {"callbacks": [judged.callback]})
    assert models_of(judged) == ["plain-4"]


def test_the_model_that_was_asked_if_the_response_has_no_name(judged: Any):
    class Asked(ScriptedModel):
        model_name: str = "asked-5"

    chain = judged | RunnableLambda(lambda found: "2 + 3?") | Asked(script=lambda _: AIMessage("5"))
    chain.invoke("2 + 3", {"callbacks": [judged.callback]})
    assert models_of(judged) == ["asked-5"]


def test_a_block_around_a_chain(judged: Any):
    with judged.episode("2 + 3"):
        (RunnableLambda(lambda _: "2 + 3?") | model(said("5", "writer-2"))).invoke("")
    assert models_of(judged) == ["writer-2"]


def test_the_nodes_of_a_graph(judged: Any):
    class State(MessagesState):
        cascade: dict[str, Any]

    answers = model(said("5", "writer-2"))
    graph = StateGraph(State)
    graph.add_node("recall", judged.recall_node())
    graph.add_node("answer", lambda state: {"messages": [answers.invoke(state["messages"])]})
    graph.add_node("learn", judged.learn_node())
    for one, other in (("__start__", "recall"), ("recall", "answer"), ("answer", "learn")):
        graph.add_edge(one, other)
    graph.compile().invoke(TASK)
    assert models_of(judged) == ["writer-2"]


def test_the_ranker_expects_the_model_that_answered_last(judged: Any):
    judged.add("what is 2 + 3, please?", "it is five", metadata={"model": "small-1"})
    judged.add("what is 2 + 4, please?", "it is six", metadata={"model": "writer-2"})
    agent = create_agent(model(*[said("it is 5", "writer-2")] * 2), [], middleware=[judged.middleware()])
    agent.invoke(TASK)
    assert set(stored_signal(judged, "metadata").values()) == {0.0}
    agent.invoke(TASK)
    found = stored_signal(judged, "metadata")
    assert found["it is six"] > 0.0 > found["it is five"]
