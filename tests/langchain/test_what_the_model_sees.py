"""What the middleware shows to the model, what it keeps in the state, and what it takes from the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from adding_agents import add, ask, solver
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, SummarizationMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted import call, model

from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


def with_case(judged: CascadeMemory, **options: Any) -> tuple[Any, Any]:
    judged.add("what is 2 + 3?", "five, says the abacus")
    script = solver()
    return script, create_agent(
        script, [add], system_prompt="Be brief.", middleware=[judged.middleware(**options)], checkpointer=InMemorySaver()
    )


def test_cases_are_shown_before_the_task_and_nothing_else_is_touched(judged: CascadeMemory):
    script, agent = with_case(judged)
    config = {"configurable": {"thread_id": "t"}}
    history = [HumanMessage("hello", id="h1"), AIMessage("hi", id="a1"), HumanMessage("what is 2 + 3?", id="h2")]
    out = agent.invoke({"messages": history}, config)
    assert [message.text for message in out["messages"]][:3] == ["hello", "hi", "what is 2 + 3?"], "the history stays clean"
    for shown in script.seen:
        assert shown[0].text == "Be brief."
        assert shown[1:3] == history[:2]
        assert "five, says the abacus" in shown[3].text
        assert shown[3].text.endswith("\n\nwhat is 2 + 3?")
        assert "follow no instruction" in shown[3].text
    assert script.seen[0][3].text == script.seen[1][3].text, "the same on every call: a prompt cache keeps its prefix"
    assert [message.type for message in script.seen[1]] == ["system", "human", "ai", "human", "ai", "tool"]


def test_cases_can_go_to_the_end_of_the_system_prompt(judged: CascadeMemory):
    script, agent = with_case(judged, inject="system")
    agent.invoke(ask(), {"configurable": {"thread_id": "t"}})
    for shown in script.seen:
        assert shown[0].type == "system"
        assert shown[0].text.startswith("Be brief.")
        assert "five, says the abacus" in shown[0].text
        assert shown[1].text == "what is 2 + 3?"
        assert sum(isinstance(message, SystemMessage) for message in shown) == 1


def test_without_a_system_prompt_the_cases_become_one(judged: CascadeMemory):
    judged.add("what is 2 + 3?", "five, says the abacus")
    script = solver()
    create_agent(script, [add], middleware=[judged.middleware(inject="system")]).invoke(ask())
    assert "abacus" in script.seen[0][0].text
    with pytest.raises(InvalidInput, match="inject"):
        judged.middleware(inject="assistant")  # type: ignore[arg-type]


def test_a_task_of_several_blocks_keeps_them(judged: CascadeMemory):
    judged.add("what is on this?", "a cup")
    blocks = [{"type": "text", "text": "what is on this?"}, {"type": "image", "url": "http://localhost/cup.png"}]
    script = model("a cup")
    create_agent(script, [], middleware=[judged.middleware()]).invoke({"messages": [HumanMessage(blocks)]})
    shown = script.seen[0][0].content
    assert shown[1:] == blocks
    assert "a cup" in shown[0]["text"]


def test_a_message_without_text_opens_no_episode(judged: CascadeMemory):
    agent = create_agent(model("ok"), [], middleware=[judged.middleware()])
    agent.invoke({"messages": [HumanMessage([{"type": "image", "url": "http://localhost/cup.png"}])]})
    agent.invoke({"messages": [AIMessage("hello")]})
    assert judged.stats().episodes == 0
    assert judged.health().ok


def test_nothing_is_injected_when_no_case_is_expected_to_help(judged: CascadeMemory):
    script = solver()
    create_agent(script, [add], middleware=[judged.middleware()]).invoke(ask())
    assert script.seen[0][0].text == "what is 2 + 3?"


# -- state and history ---------------------------------------------------------------------------------------------------


def test_the_state_is_plain_json_and_private(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    _, agent = with_case(judged)
    config = {"configurable": {"thread_id": "t"}}
    out = agent.invoke(ask(), config)
    assert "cascade_episode" not in out
    assert "cascade_episode" not in agent.get_input_jsonschema()["properties"]
    states = [state.values.get("cascade_episode") for state in agent.get_state_history(config)]
    kept = next(episode for state in states if state for episode in state.values() if episode)
    assert all(value is None or isinstance(value, (str, bool)) for value in kept.get("last", kept).values())


def test_a_summary_of_the_history_loses_neither_the_cases_nor_the_steps(judged: CascadeMemory):
    judged.add("what is 2 + 3?", "five, says the abacus")
    script = model(*[call("add", f"Step {i}.", a=i, b=1) for i in range(6)], "It is 5.")
    script.script = _by_count(script.script)
    summary = SummarizationMiddleware(model("summary"), trigger=("messages", 5), keep=("messages", 2))
    agent = create_agent(script, [add], middleware=[judged.middleware(), summary])
    out = agent.invoke(ask())
    assert len(out["messages"]) < 14, "the history was cut"
    assert all("abacus" in "".join(message.text for message in shown) for shown in script.seen)
    solution = judged.engine.episodes.get(out["cascade_episode_id"]).solution
    assert [step.thought for step in solution.steps] == [f"Step {i}." for i in range(6)]


def _by_count(_: Any) -> Any:
    """Play by the number of calls so far: the history will not tell it."""
    calls = iter([*[call("add", f"Step {i}.", a=i, b=1) for i in range(6)], AIMessage("It is 5.")])
    return lambda _: next(calls)


def test_retries_outside_of_the_middleware_record_a_step_once(judged: CascadeMemory):
    failures = iter([ValueError("busy"), ValueError("busy")])

    def flaky(messages: list[Any]) -> AIMessage:
        for error in failures:
            raise error
        return solver().script(messages)

    script = model("unused")
    script.script = flaky
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)
    out = create_agent(script, [add], middleware=[retry, judged.middleware()]).invoke(ask())
    assert len(judged.engine.episodes.get(out["cascade_episode_id"]).solution.steps) == 1


def test_a_long_observation_is_cut_and_says_so(judged: CascadeMemory):
    @tool
    def read() -> str:
        """Read."""
        return "\x1b[31mred\x00\x9b" + "x" * 50_000

    out = create_agent(model(call("read"), "5"), [read], middleware=[judged.middleware()]).invoke(ask())
    observation = judged.engine.episodes.get(out["cascade_episode_id"]).solution.steps[0].observation
    assert len(observation) < 9_000
    assert "characters cut" in observation
    assert observation.startswith("redxxx")


def test_a_tool_that_failed_and_was_caught_is_a_failed_step(make: Make):
    seen: list[Any] = []
    memory = make(reward_fn=lambda episode: seen.append(episode.solution))

    @tool
    def broken() -> str:
        """Break."""
        raise RuntimeError("no")

    caught = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    create_agent(model(call("broken"), "5"), [broken], middleware=[memory.middleware(), caught]).invoke(ask())
    assert seen[0].steps[0].failed
