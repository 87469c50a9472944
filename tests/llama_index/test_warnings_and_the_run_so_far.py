"""A failure that may have followed from something else: guarded tools know what was done in the run so far."""

from __future__ import annotations

from typing import Any

import pytest
from llama_agents import function_agent, with_block
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.types import BaseTool
from workflows.runtime.types import results

from cascade_memory import Step
from cascade_memory.llama_index.guarding import Guard, guarded
from cascade_memory.llama_index.steps_so_far import StepsSoFar

pytestmark = pytest.mark.usefixtures("always_warned")

TASK = "put the cup into the red box"
NOT_THERE, TAKE, MOVE = "There is nothing.", ("take", {"what": "cup"}), ("move", {"what": "cup", "where": "red box"})


@pytest.fixture
def memory(make: Any) -> Any:
    """A memory of a run that could not take the cup, and then not move it."""
    memory = make(abstain=False, reward_fn=lambda episode: 0.0)
    took = Step(tool="take", arguments={"what": "cup"}, observation=NOT_THERE, failed=True)
    moved = Step(tool="move", arguments={"what": "cup", "where": "red box"}, observation="Nothing happens.", failed=True)
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution=[took, moved], source="env")
    for warning in memory.warnings():
        memory.restore_warning(warning.id)
    return memory.install()


def tools_of(memory: Any, moved: list[str], *, there: bool) -> list[BaseTool]:
    def take(what: str) -> str:
        """Take a thing."""
        if not there:
            raise ValueError(NOT_THERE)
        return f"You have the {what}."

    async def move(what: str, where: str) -> str:
        """Move a thing."""
        moved.append(f"{what} to {where}")
        return "Done."

    return memory.guarded([take, FunctionTool.from_defaults(async_fn=move)])


async def test_who_has_failed_at_the_same_before_is_warned(memory: Any):
    moved: list[str] = []
    agent = function_agent(TAKE, MOVE, "I give up.", tools=tools_of(memory, moved, there=False))
    await agent.run(TASK, memory=with_block(memory))
    assert moved == []
    assert "Nothing happens." in str(agent.llm.seen[2][-1].content)


async def test_who_has_not_is_not(memory: Any):
    moved: list[str] = []
    agent = function_agent(TAKE, MOVE, "It is there.", tools=tools_of(memory, moved, there=True))
    await agent.run(TASK, memory=with_block(memory))
    assert moved == ["cup to red box"]


async def test_what_was_done_in_another_run_does_not_count(memory: Any):
    moved: list[str] = []
    failing = function_agent(TAKE, "I give up.", tools=tools_of(memory, moved, there=False))
    await failing.run(TASK, memory=with_block(memory))
    other = function_agent(MOVE, "It is there.", tools=tools_of(memory, moved, there=True))
    await other.run(TASK, memory=with_block(memory))
    assert moved == ["cup to red box"]


def test_a_warning_and_waiting_for_a_person_are_no_steps(memory: Any):
    waiting = getattr(results, "WaitingForEvent", None)
    if waiting is None:
        pytest.skip("this version of workflows waits in another way")

    def move(what: str, where: str) -> str:
        """Move a thing."""
        raise waiting.__new__(waiting)

    def take(what: str) -> str:
        """Take a thing."""
        raise ValueError(NOT_THERE)

    steps, recall = StepsSoFar(), memory.engine.recall(TASK)
    guard = Guard(memory.engine, lambda: (recall.episode_id, None), steps)
    take_tool, move_tool = guarded(take, guard), guarded(move, guard)
    with pytest.raises(ValueError, match=NOT_THERE):
        take_tool(what="cup")
    assert "Nothing happens." in move_tool(what="cup", where="red box").content
    with pytest.raises(waiting):
        move_tool(what="cup", where="red box")
    assert [(step.tool, step.failed) for step in steps.of(recall.episode_id)] == [("take", True)]


def test_of_many_episodes_the_latest_are_held_and_of_long_ones_the_beginning():
    steps = StepsSoFar()
    for number in range(300):
        steps.note(f"e{number}", Step(f"step {number}"))
    assert steps.of("e0") == []
    assert [step.action for step in steps.of("e299")] == ["step 299"]
    for number in range(300):
        steps.note("long", Step(f"step {number}"))
    assert len(steps.of("long")) == 200
