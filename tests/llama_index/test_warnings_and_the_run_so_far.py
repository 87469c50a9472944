"""A failure that may have followed from something else: guarded tools know what was done in the run so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llama_agents import function_agent, with_block
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.core.tools.types import BaseTool, ToolOutput
from workflows.runtime.types import results

from cascade_memory import Ranking, Step
from cascade_memory.llama_index.guarding import Guard, NotedSteps, guarded

pytestmark = [
    pytest.mark.usefixtures("always_warned"),
    pytest.mark.filterwarnings("ignore:reward_fn gave 0"),  # what is judged here are steps, not solutions
]

TASK = "put the cup into the red box"
NOT_THERE, TAKE, MOVE = "There is nothing.", ("take", {"what": "cup"}), ("move", {"what": "cup", "where": "red box"})


@pytest.fixture
def memory(make: Any) -> Any:
    """A memory of a run that could not take the cup, and then not move it."""
    memory = make(ranking=Ranking(abstain=False), reward_fn=lambda episode: 0.0)
    took = Step(tool="take", arguments={"what": "cup"}, observation=NOT_THERE, failed=True)
    moved = Step(tool="move", arguments={"what": "cup", "where": "red box"}, observation="Nothing happens.", failed=True)
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution=[took, moved], source="env")
    for warning in memory.warnings.all():
        memory.warnings.restore(warning.id)
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

    steps, recall = NotedSteps(), memory.engine.recall(TASK)
    guard = Guard(memory.engine, lambda: (recall.episode_id, None), steps, ())
    take_tool, move_tool = guarded(take, guard), guarded(move, guard)
    with pytest.raises(ValueError, match=NOT_THERE):
        take_tool(what="cup")
    assert "Nothing happens." in move_tool(what="cup", where="red box").content
    with pytest.raises(waiting):
        move_tool(what="cup", where="red box")
    assert [(step.tool, step.failed) for step in steps.of(recall.episode_id)] == [("take", True)]


@pytest.mark.parametrize("failed", [True, False])
def test_a_tool_that_says_of_its_output_that_it_is_an_error_has_failed(memory: Any, failed: bool):
    class Saying(BaseTool):
        metadata = ToolMetadata("Take a thing.", name="take")

        def __call__(self, input: Any) -> ToolOutput:
            return ToolOutput(content="fine", tool_name="take", raw_input={"input": input}, raw_output=None, is_error=failed)

    steps, recall = NotedSteps(), memory.engine.recall(TASK)
    guarded(Saying(), Guard(memory.engine, lambda: (recall.episode_id, None), steps, ()))("cup")
    assert [(step.tool, step.failed) for step in steps.of(recall.episode_id)] == [("take", failed)]


def test_the_latest_episodes_are_held_and_of_each_the_latest_steps():
    steps = NotedSteps()
    for number in range(300):
        steps.note(f"e{number}", Step(f"step {number}"))
    assert steps.of("e0") == []
    assert [step.action for step in steps.of("e299")] == ["step 299"]
    for number in range(300):
        steps.note("long", Step(f"step {number}"))
    assert [step.action for step in steps.of("long")][0::99] == ["step 200", "step 299"]
    for number in range(4):
        steps.note("big", Step(f"{number}" * 50_000))
    assert [step.action[0] for step in steps.of("big")] == ["2", "3"]
    steps.clear()
    assert steps.of("big") == []


async def test_recalling_with_the_memory_s_own_tool_is_no_step(memory: Any):
    moved: list[str] = []
    tools = [*tools_of(memory, moved, there=False), *memory.guarded([memory.tool()])]
    asking = ("recall_cases", {"query": "put the cup into the red box"})
    agent = function_agent(asking, TAKE, MOVE, "I give up.", tools=tools)
    await agent.run(TASK, memory=with_block(memory))
    assert "Nothing happens." in str(agent.llm.seen[3][-1].content)
    assert moved == []


@pytest.mark.parametrize("module", [None, 3, "workflows.somewhere"])
def test_the_exception_of_a_tool_is_the_agents_whatever_it_is(memory: Any, module: Any):
    class Odd(Exception):
        __module__ = module

    def take(what: str) -> str:
        """Take a thing."""
        raise Odd

    (tool,) = memory.guarded([take])
    with memory.episode(TASK), pytest.raises(Odd):
        tool(what="cup")
    assert memory.health().failures == {}


def test_a_tool_that_returns_anything_and_changes_its_arguments_is_noted_as_it_was_called(memory: Any):
    class Odd:
        is_error = np.array([True, False])

    class Old(BaseTool):
        @property
        def metadata(self) -> ToolMetadata:
            return ToolMetadata("Add.", name="add")

        def __call__(self, xs: list[str]) -> Any:
            xs.append("later")
            return Odd()

    steps, recall = NotedSteps(), memory.engine.recall(TASK)
    tool = guarded(Old(), Guard(memory.engine, lambda: (recall.episode_id, None), steps, ()))
    assert isinstance(tool.call(xs=["a"]), Odd)
    assert [step.arguments for step in steps.of(recall.episode_id)] == [{"xs": ["a"]}]
    assert memory.health().failures == {}
