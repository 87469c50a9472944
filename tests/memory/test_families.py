"""Whatever door a solution comes through, what was made from a case is recognised as its descendant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cascade_memory import CascadeMemory, Ranking, Step, Trajectory
from cascade_memory.mcp_server.verbs import Verbs

DEVICES = [f"{device}-{number}" for number, device in enumerate(("printer", "router", "badge", "scanner") * 3)]


def _task(device: str) -> str:
    return f"Ticket about {device}: it no longer answers."


def _steps(device: str) -> Trajectory:
    return Trajectory(
        (
            Step(tool="inspect", arguments={"item": device}, observation=f"{device} is ready for the next step"),
            Step(tool="restart", arguments={"item": device}, observation=f"{device} works again"),
        ),
        answer=f"{device} was taken care of.",
    )


def _text(device: str) -> str:
    return f"First inspect {device} and read its log, then restart {device} and wait a minute."


@pytest.mark.parametrize("solved", [_text, _steps])
def test_solutions_that_the_user_passes(ram: CascadeMemory, solved: Callable[[str], Any]):
    for device in DEVICES:
        ram.reward(ram.recall(_task(device)).episode_id, 1.0, solution=solved(device))
    _assert_one_family(ram)


def test_texts_that_an_agent_reports_over_mcp(ram: CascadeMemory):
    verbs = Verbs(ram)
    for device in DEVICES:
        episode_id = verbs.recall_cases(_task(device))["episode_id"]
        verbs.report_outcome(episode_id, 1, _text(device))
        (seen,) = ram.review.reported()
        ram.reward(episode_id, 1.0, source="human", confirms=seen.fingerprint)
    _assert_one_family(ram)


def test_tool_calls_of_a_langchain_agent():
    agents, tools = pytest.importorskip("langchain.agents"), pytest.importorskip("langchain_core.tools")
    from scripted import call, model

    from cascade_memory.langchain import CascadeMemory

    @tools.tool
    def inspect(item: str) -> str:
        """Inspect an item."""
        return f"{item} is ready for the next step"

    @tools.tool
    def restart(item: str) -> str:
        """Restart an item."""
        return f"{item} works again"

    with CascadeMemory(
        embedder="hashing", learn="inline", ranking=Ranking(abstain=False), reward_fn=lambda episode: 1.0
    ) as memory:
        for device in DEVICES:
            script = model(call("inspect", item=device), call("restart", item=device), f"{device} was taken care of.")
            agent = agents.create_agent(script, [inspect, restart], middleware=[memory.middleware()])
            agent.invoke({"messages": [("user", _task(device))]})
        _assert_one_family(memory.engine)


@pytest.mark.slow
def test_tool_calls_of_a_llama_index_agent():
    pytest.importorskip("llama_index.core")
    from llama_agents import function_agent

    from cascade_memory.llama_index import CascadeMemory

    def inspect(item: str) -> str:
        """Inspect an item."""
        return f"{item} is ready for the next step"

    def restart(item: str) -> str:
        """Restart an item."""
        return f"{item} works again"

    with CascadeMemory(
        embedder="hashing", learn="inline", ranking=Ranking(abstain=False), reward_fn=lambda episode: 1.0
    ) as memory:
        for device in DEVICES:
            script = (("inspect", {"item": device}), ("restart", {"item": device}), f"{device} was taken care of.")
            asyncio.run(memory.arun(function_agent(*script, tools=(inspect, restart)), _task(device)))
        _assert_one_family(memory.engine)


def _assert_one_family(memory: CascadeMemory) -> None:
    memory.sync()
    learned = memory.report().learned
    assert learned is not None
    assert (learned.by, learned.families) == ("rewards", (len(DEVICES),))
