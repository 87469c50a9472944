"""The middleware tells the memory what the agent has done so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, ToolException
from mistaken_agents import tool_messages
from scripted import call, model

from cascade_memory import Ranking, Step
from cascade_memory.langchain import CascadeMemory

pytestmark = pytest.mark.usefixtures("always_warned")

TASK = "put the cup into the box"
SAID = "That did not work."


def agent(memory: CascadeMemory, *, there: bool, then: Callable[[Any], AIMessage] | str = "Done.") -> Any:
    def pick(thing: str) -> str:
        if not there:
            raise ToolException(SAID)
        return "You have it."

    tools = [
        StructuredTool.from_function(pick, description="Pick something up.", handle_tool_error=True),
        StructuredTool.from_function(lambda thing: "It is there.", name="move", description="Move something."),
    ]
    script = model(call("pick", thing="cup"), call("move", thing="cup"), then)
    return create_agent(script, tools, middleware=[memory.middleware()])


@pytest.fixture
def memory(make: Callable[..., CascadeMemory]) -> CascadeMemory:
    memory = make(ranking=Ranking(abstain=False))
    steps = [Step(tool=name, arguments={"thing": "cup"}, observation=SAID, failed=True) for name in ("pick", "move")]
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution=steps, source="env")
    (warning,) = memory.warnings.all()
    assert warning.tool == "move"
    memory.warnings.restore(warning.id)
    return memory


def test_after_what_has_gone_well_this_time_the_tool_runs(memory: CascadeMemory):
    out = agent(memory, there=True).invoke({"messages": [("user", TASK)]})
    assert [one.text for one in tool_messages(out["messages"])] == ["You have it.", "It is there."]


async def test_after_the_same_failure_the_model_is_warned(memory: CascadeMemory):
    out = await agent(memory, there=False).ainvoke({"messages": [("user", TASK)]})
    failed, warned = tool_messages(out["messages"])
    assert failed.text == SAID
    assert "was not done now" in warned.text


def test_what_failed_in_an_earlier_task_of_the_same_thread_does_not_count(memory: CascadeMemory):
    earlier = agent(memory, there=False).invoke({"messages": [("user", "look for the plate")]})["messages"]
    out = agent(memory, there=True).invoke({"messages": [*earlier, ("user", TASK)]})
    assert [one.text for one in tool_messages(out["messages"])][-2:] == ["You have it.", "It is there."]
