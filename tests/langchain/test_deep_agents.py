"""The middleware in ``create_deep_agent``: files, subagents, summaries, interrupts. Skipped without deepagents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted import ScriptedModel, call, model

from cascade_memory import Ranking
from cascade_memory.langchain import CascadeMemory

deepagents = pytest.importorskip("deepagents")

Make = Callable[..., CascadeMemory]
SHOWN = "Solved cases from memory"
PART = "PART: what is 6 times 7?"
FORK = "[The messages above"
pytestmark = pytest.mark.filterwarnings("ignore:The feature `forked subagents` is in beta")


def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


def part_in(messages: list[BaseMessage]) -> bool:
    """Say whether a subagent was asked: its task stands last, below what else it is shown."""
    return next(one.text for one in reversed(messages) if one.type == "human").splitlines()[-1] == PART


def delegating(*kinds: str) -> ScriptedModel:
    """A model whose main agent gives a part to these subagents at once; a subagent calls the tool, then answers."""

    def play(messages: list[BaseMessage]) -> AIMessage:
        if part_in(messages):
            return AIMessage("42, I say.") if messages[-1].type == "tool" else call("multiply", a=6, b=7)
        if messages[-1].type == "tool":
            return AIMessage("It is 42.")
        calls = [call("task", description=PART, subagent_type=kind).tool_calls[0] for kind in kinds]
        return AIMessage("", tool_calls=calls)

    return ScriptedModel(script=play)


def named(name: str, **about: Any) -> dict[str, Any]:
    return {"name": name, "description": name, **about}


def ask(agent: Any, memory: CascadeMemory, text: str = "What is 6 times 7?", **configurable: Any) -> dict[str, Any]:
    config = {"callbacks": [memory.callback], "configurable": configurable}
    return agent.invoke({"messages": [("user", text)]}, config)


def ends(memory: CascadeMemory, namespace: str | None = None) -> list[tuple[str, str]]:
    """The beginnings of the tasks, and what became of them, the oldest first."""
    found = [(one.query[:20], one.status) for one in memory.acting(namespace=namespace).episodes.all()]
    assert memory.health().failures == {}
    return found


@pytest.fixture
def right(make: Make) -> CascadeMemory:
    return make(
        ranking=Ranking(abstain=False), reward_fn=lambda episode: None if episode.status == "error" else "42" in episode.answer
    )


def test_files_and_plans_are_steps_and_cases_are_shown(right: CascadeMemory):
    plan = call("write_todos", todos=[{"content": "multiply", "status": "in_progress"}])
    write, read = call("write_file", file_path="/n.md", content="6*7"), call("read_file", file_path="/n.md")
    scripted = model(plan, write, call("multiply", a=6, b=7), read, "It is 42.")
    agent = deepagents.create_deep_agent(scripted, [multiply], middleware=[right.middleware(), TodoListMiddleware()])
    result = ask(agent, right)
    steps = right.episodes.get(result["cascade_episode_id"]).solution.steps
    assert [step.tool for step in steps] == ["write_todos", "write_file", "multiply", "read_file"]
    assert "6*7" in steps[-1].observation
    assert not any(SHOWN in message.text for message in scripted.seen[-1])
    result = ask(agent, right, "Tell me what 6 times 7 is")
    assert all(sum(SHOWN in message.text for message in seen) == 1 for seen in scripted.seen[5:])
    assert not any(SHOWN in message.text for message in result["messages"])
    assert right.stats().rewards == 2


@pytest.mark.parametrize("kinds", [("general-purpose",), ("plain",), ("general-purpose", "plain")])
async def test_a_subagent_without_the_middleware_is_a_step_of_the_main_agent(right: CascadeMemory, kinds: tuple[str, ...]):
    scripted = delegating(*kinds)
    agent = deepagents.create_deep_agent(
        scripted, [multiply], middleware=[right.middleware()], subagents=[named("plain", system_prompt="p")]
    )
    right.add("what is 7 times 6?", "42")
    await agent.ainvoke({"messages": [("user", "What is 6 times 7?")]}, {"callbacks": [right.callback]})
    (episode,) = right.episodes.all()
    assert [(step.tool, step.observation) for step in episode.solution.steps] == [("task", "42, I say.")] * len(kinds)
    shown = [any(SHOWN in message.text for message in seen) for seen in scripted.seen]
    assert shown == [True, *[False] * 2 * len(kinds), True]


def test_a_subagent_with_the_middleware_has_an_episode_and_cases_of_its_own(right: CascadeMemory):
    own = named("own", system_prompt="p", middleware=[right.middleware(namespace="parts")])
    scripted = delegating("own")
    agent = deepagents.create_deep_agent(scripted, [multiply], middleware=[right.middleware()], subagents=[own])
    result = ask(agent, right, cascade_actor="ann")
    assert right.episodes.get(result["cascade_episode_id"]).query == "What is 6 times 7?"
    ask(agent, right, "Tell me what 6 times 7 is", cascade_actor="ann")
    assert [status for _, status in ends(right)] == ["settled"] * 2
    assert ends(right, "parts") == [(PART[:20], "settled")] * 2
    assert [case.query for case in right.acting(namespace="parts").cases.all()] == [PART]
    assert {one.actor for one in right.acting(namespace="parts").episodes.all()} == {"ann"}
    assert all(any(SHOWN in message.text for message in seen) for seen in scripted.seen[4:])


@pytest.mark.parametrize("kind", ["own", "fork"])
def test_subagents_with_the_middleware_may_run_at_once(right: CascadeMemory, kind: str):
    own = named("own", system_prompt="p", middleware=[right.middleware()])
    subagents = [own, named("fork", mode="fork")]
    agent = deepagents.create_deep_agent(
        delegating(kind, kind), [multiply], middleware=[right.middleware()], subagents=subagents
    )
    assert ask(agent, right)["messages"][-1].text == "It is 42."
    assert [status for _, status in ends(right)] == ["settled"] * 3


def test_an_interrupted_run_names_its_own_episode_and_not_that_of_a_subagent(right: CascadeMemory):
    def play(messages: list[BaseMessage]) -> AIMessage:
        if part_in(messages):
            return AIMessage("42")
        done = sum(one.type == "tool" for one in messages)
        return call("task", description=PART, subagent_type="own") if done == 0 else call("multiply", a=6, b=7)

    own = named("own", system_prompt="p", middleware=[right.middleware()])
    options = {"subagents": [own], "checkpointer": InMemorySaver(), "interrupt_on": {"multiply": True}}
    agent = deepagents.create_deep_agent(ScriptedModel(script=play), [multiply], middleware=[right.middleware()], **options)
    result = ask(agent, right, "What is six sevens?", thread_id="t")
    assert right.episodes.get(result["cascade_episode_id"]).query == "What is six sevens?"


@pytest.mark.parametrize("skips", [True, False])
def test_a_fork_has_the_middleware_of_the_main_agent(right: CascadeMemory, skips: bool):
    middleware = right.middleware(skip=lambda text: text.startswith(FORK)) if skips else right.middleware()
    agent = deepagents.create_deep_agent(
        delegating("fork"), [multiply], middleware=[middleware], subagents=[named("fork", mode="fork")]
    )
    result = ask(agent, right)
    assert right.episodes.get(result["cascade_episode_id"]).query == "What is 6 times 7?"
    assert {status for _, status in ends(right)} == {"settled"}
    assert sorted(query.startswith(FORK) for query, _ in ends(right)) == ([False] if skips else [False, True])


@pytest.mark.parametrize("who", ["main", "own", "general-purpose"])
def test_a_person_is_asked_and_the_run_goes_on(right: CascadeMemory, who: str):
    scripted = model(call("multiply", a=6, b=7), "It is 42.") if who == "main" else delegating(who)
    own = named("own", system_prompt="p", middleware=[right.middleware(namespace="parts")])
    options = {"subagents": [own], "checkpointer": InMemorySaver(), "interrupt_on": {"multiply": True}}
    agent = deepagents.create_deep_agent(scripted, [multiply], middleware=[right.middleware()], **options)
    config = {"callbacks": [right.callback], "configurable": {"thread_id": "t"}}
    for turn in (1, 2):
        asked = agent.invoke({"messages": [("user", "What is 6 times 7?")]}, config)
        assert asked["__interrupt__"]
        assert [status for _, status in ends(right)].count("open") == 1
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        assert [status for _, status in ends(right)] == ["settled"] * turn
        assert [status for _, status in ends(right, "parts")] == ["settled"] * (turn if who == "own" else 0)


def test_a_summary_takes_neither_cases_nor_steps(right: CascadeMemory):
    right.add("Read the book once", "look at all pages")

    def look(page: int) -> str:
        """Look at a page."""
        return f"page {page}: " + "word " * 120

    def play(messages: list[BaseMessage]) -> AIMessage:
        if len(messages) == 1:  # no system prompt: a summary is asked for
            return AIMessage("SUMMARY")
        done.append(len(messages))
        return call("look", page=len(done)) if len(done) <= 13 else AIMessage("42 pages")

    done: list[int] = []
    small = ScriptedModel(script=play, profile={"max_input_tokens": 4_500})
    agent = deepagents.create_deep_agent(small, [look], middleware=[right.middleware()], system_prompt="Read.")
    result = ask(agent, right, "Read the book")
    assert [step.arguments["page"] for step in right.episodes.get(result["cascade_episode_id"]).solution.steps] == [
        *range(1, 14)
    ]
    working = [seen for seen in small.seen if len(seen) > 1]
    assert len(working) < len(small.seen), "it was summarised"
    assert all(sum(SHOWN in message.text for message in seen) == 1 for seen in working)


def test_a_subagent_that_raises_ends_both_episodes(make: Make):
    judged: list[tuple[str, str]] = []
    memory = make(reward_fn=lambda episode: judged.append((episode.query, episode.status)))

    def play(messages: list[BaseMessage]) -> AIMessage:
        if part_in(messages):
            raise RuntimeError("the model cannot be reached")
        return call("task", description=PART, subagent_type="own")

    own = named("own", system_prompt="p", middleware=[memory.middleware()])
    agent = deepagents.create_deep_agent(
        ScriptedModel(script=play), [multiply], middleware=[memory.middleware()], subagents=[own]
    )
    with pytest.raises(RuntimeError, match="cannot be reached"):
        ask(agent, memory)
    assert sorted(judged) == [(PART, "error"), ("What is 6 times 7?", "error")]
    assert {status for _, status in ends(memory)} == {"censored"}


def test_a_stream_that_is_cut_off_is_censored(right: CascadeMemory):
    agent = deepagents.create_deep_agent(delegating("general-purpose"), [multiply], middleware=[right.middleware()])
    asked = {"messages": [("user", "What is 6 times 7?")]}
    for part in agent.stream(asked, {"callbacks": [right.callback]}, stream_mode="updates", subgraphs=True):
        if "tools" in part[1]:
            break
    assert ends(right) == [("What is 6 times 7?"[:20], "censored")]
