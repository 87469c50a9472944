"""Warnings in hand-written graphs with a ToolNode, and where a person decides about calls."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from mistaken_agents import ASK, Database, heeding, query, tool_messages
from mistakes import ERROR, RIGHT, TASK, WRONG, is_warning, known_mistake, solved
from scripted import call, model
from warning_rows import rows_of

from cascade_memory import Ranking
from cascade_memory.langchain import CascadeMemory

pytestmark = pytest.mark.usefixtures("always_warned")

Make = Callable[..., CascadeMemory]
THREAD: Any = {"configurable": {"thread_id": "t1"}}


class State(MessagesState):
    cascade: dict[str, Any]


class Bare(MessagesState):
    """The state of a graph that has no node of the memory."""


def graph(memory: CascadeMemory, tools: Any, *script: Any, state: Any = State, saver: Any = None) -> Any:
    """A loop of a model and its guarded tools, with the memory's nodes if the state has room for the episode."""
    played = model(*script)
    builder = StateGraph(state)

    def think(state: Any) -> dict[str, Any]:
        return {"messages": [played.invoke(state["messages"])]}

    def after(state: Any) -> str:
        return "tools" if state["messages"][-1].tool_calls else "learn"

    builder.add_node("think", think).add_node("tools", ToolNode(tools, **memory.tool_guard()))
    if state is State:
        builder.add_node("recall", memory.recall_node()).add_node("learn", memory.learn_node())
        builder.add_edge(START, "recall").add_edge("recall", "think")
    else:
        builder.add_node("learn", lambda state: {"messages": []}).add_edge(START, "think")
    builder.add_conditional_edges("think", after, ["tools", "learn"]).add_edge("tools", "think").add_edge("learn", END)
    return builder.compile(checkpointer=saver)


def checks(memory: CascadeMemory) -> list[tuple[str, bool]]:
    """The last episode's decisions whether to warn."""
    last = next(memory.episodes.all(newest_first=True))
    return [(one.warning, one.warned) for one in rows_of(memory).checks(last.id)]


@pytest.fixture
def memory(make: Make) -> CascadeMemory:
    memory = make(reward_fn=solved, ranking=Ranking(abstain=False))
    known_mistake(memory)
    return memory


async def test_a_guarded_tool_node_warns_before_the_tool_runs(memory: CascadeMemory):
    database = Database()
    heeded = graph(memory, [database.tool], query(WRONG), heeding, "Ann does.")
    for out in (heeded.invoke(ASK), await heeded.ainvoke(ASK)):
        warning, answer = tool_messages(out["messages"])
        assert is_warning(warning.text)
        assert warning.status == "error"
        assert answer.text == "Ann works there"
    assert database.ran == [RIGHT, RIGHT]
    memory.sync()
    for episode in itertools.islice(memory.episodes.all(newest_first=True), 2):
        assert [step.arguments["sql"] for step in episode.solution.steps] == [RIGHT]


async def test_an_agent_that_insists_gets_its_tool(memory: CascadeMemory):
    database = Database()
    insisting = graph(memory, [database.tool], query(WRONG), query(WRONG), "I give up.")
    for out in (insisting.invoke(ASK), await insisting.ainvoke(ASK)):
        assert [is_warning(one.text) for one in tool_messages(out["messages"])] == [True, False]
    assert database.ran == [WRONG, WRONG]
    assert len(checks(memory)) == 1


def test_a_graph_without_the_memorys_nodes_is_guarded_in_a_block_and_under_the_handler(memory: CascadeMemory):
    database = Database()
    bare = graph(memory, [database.tool], query(WRONG), heeding, "Ann does.", state=Bare)
    bare.invoke(ASK)
    assert database.ran == [WRONG], "it has no episode"
    with memory.episode(TASK):
        bare.invoke(ASK)
    assert database.ran == [WRONG, RIGHT]
    asking = graph(
        memory, [database.tool, memory.tool()], call("recall_cases", query=TASK), query(WRONG), heeding, "Ann does.", state=Bare
    )
    asking.invoke(ASK, {"callbacks": [memory.callback]})
    assert database.ran == [WRONG, RIGHT, RIGHT]
    memory.sync()
    assert checks(memory) == [(memory.warnings.all()[0].id, True)]


async def test_a_failing_memory_or_tool_changes_nothing(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    database, raising = Database(), Database(fails=RuntimeError)
    failing = graph(memory, [raising.tool], query(WRONG), query(WRONG))
    with pytest.raises(RuntimeError, match=ERROR):
        failing.invoke(ASK)
    monkeypatch.setattr(rows_of(memory), "checks", broken)
    monkeypatch.setattr(rows_of(memory), "note_check", broken)
    insisting = graph(memory, [database.tool], query(WRONG), "I give up.")
    for out in (insisting.invoke(ASK), await insisting.ainvoke(ASK)):
        assert [one.text for one in tool_messages(out["messages"])] == [ERROR]


def test_a_node_that_runs_again_after_an_interrupt_warns_again_of_the_same_and_of_nothing_more(memory: CascadeMemory):
    """Both calls are of one turn: one is warned of, and the other one waits for a person."""
    database = Database()

    @tool
    def confirm() -> str:
        """Ask somebody."""
        return str(interrupt("sure?"))

    both = query(WRONG)
    both.tool_calls += call("confirm").tool_calls
    waiting = graph(memory, [database.tool, confirm], both, heeding_or_done, "Ann does.", saver=InMemorySaver())
    assert waiting.invoke(ASK, THREAD)["__interrupt__"]
    out = waiting.invoke(Command(resume="yes"), THREAD)
    first, second, *_ = tool_messages(out["messages"])
    assert is_warning(first.text)
    assert second.text == "yes"
    assert database.ran == [RIGHT]
    assert len(checks(memory)) == 1


def heeding_or_done(messages: Any) -> AIMessage:
    return query(RIGHT) if any(is_warning(one.text) for one in tool_messages(messages)) else AIMessage("I do not know.")


# -- a person decides about calls ----------------------------------------------------------------------------------------


def approving(memory: CascadeMemory, database: Database, *script: Any, **options: Any) -> Any:
    approval = HumanInTheLoopMiddleware(interrupt_on={"query": True}, **options)
    middleware = [memory.middleware(), approval]
    return create_agent(model(*script), [database.tool], middleware=middleware, checkpointer=InMemorySaver())


def decide(kind: str, **more: Any) -> Command[Any]:
    return Command(resume={"decisions": [{"type": kind, **more}]})


def test_an_approved_call_is_warned_of_and_asked_about_again(memory: CascadeMemory):
    database = Database()
    insisting = approving(memory, database, query(WRONG), query(WRONG), "I give up.")
    insisting.invoke(ASK, THREAD)
    out = insisting.invoke(decide("approve"), THREAD)
    assert out["__interrupt__"]
    assert is_warning(tool_messages(out["messages"])[-1].text)
    assert database.ran == []
    insisting.invoke(decide("approve"), THREAD)
    assert database.ran == [WRONG]


def test_a_call_that_a_person_has_put_there_is_theirs(memory: CascadeMemory):
    database = Database()
    edited = {"name": "query", "args": {"sql": "SELECT nme, name FROM staff"}}
    waiting = approving(memory, database, query(RIGHT), "I do not know.")
    waiting.invoke(ASK, THREAD)
    out = waiting.invoke(decide("edit", edited_action=edited), THREAD)
    if "hitl_edited_tool_calls" in inspect.getsource(inspect.getmodule(HumanInTheLoopMiddleware)):  # type: ignore[arg-type]
        assert database.ran == ["SELECT nme, name FROM staff"]
    else:  # before LangChain 1.4 the edited call cannot be told from the model's own
        assert is_warning(tool_messages(out["messages"])[-1].text)


@pytest.mark.skipif(
    "interrupt_mode" not in inspect.signature(HumanInTheLoopMiddleware.__init__).parameters, reason="a newer LangChain has it"
)
def test_where_a_person_is_asked_call_by_call_the_warning_comes_first(memory: CascadeMemory):
    database = Database()
    insisting = approving(memory, database, query(WRONG), query(WRONG), "I give up.", interrupt_mode="per_call")
    out = insisting.invoke(ASK, THREAD)
    (waiting,) = out["__interrupt__"]
    assert [is_warning(one.text) for one in tool_messages(out["messages"])] == [True], "nobody was asked about the first call"
    out = insisting.invoke(Command(resume={waiting.id: {"type": "approve"}}), THREAD)
    assert [is_warning(one.text) for one in tool_messages(out["messages"])] == [True, False]
    assert database.ran == [WRONG]


def test_a_refused_call_is_blamed_and_warned_of(make: Make):
    memory, database = make(reward_fn=solved), Database()
    refused = approving(memory, database, query("DROP staff"), "Then I do not know.")
    refused.invoke(ASK, THREAD)
    refused.invoke(decide("reject", message="User rejected it: never drop a table"), THREAD)
    (warning,) = memory.warnings.all()
    assert (warning.why, warning.tool) == ("refused", "query")
    assert "never drop a table" in warning.happened
    memory.warnings.restore(warning.id)
    again = graph(memory, [database.tool], query("DROP staff"), "Then I do not know.")
    (message,) = tool_messages(again.invoke(ASK)["messages"])
    assert "never drop a table" in message.text
    assert database.ran == []
