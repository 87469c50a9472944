"""Human in the loop, with a SQLite checkpointer: one episode per task, whoever answers, whenever, in whichever process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from scripted import call, model

from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]
THREAD = {"configurable": {"thread_id": "t1"}}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ask(text: str = "what is 2 + 3?") -> dict[str, Any]:
    return {"messages": [("user", text)]}


def decide(kind: str) -> Command[Any]:
    return Command(resume={"decisions": [{"type": kind}]})


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite3")) as saver:
        yield saver


@pytest.fixture
def judged(make: Make, tmp_path: Path) -> CascadeMemory:
    return make(
        tmp_path / "memory", reward_fn=lambda episode: None if episode.status == "error" else float("5" in episode.answer)
    )


WAYS = ["middleware", "handler", "both"]


def build(memory: CascadeMemory, saver: Any, way: str, *script: Any) -> tuple[Any, dict[str, Any]]:
    """Return an agent whose ``add`` needs an approval, with the memory hooked in one way."""
    script = script or (call("add", "I add.", a=2, b=3), "It is 5.")
    approval = HumanInTheLoopMiddleware(interrupt_on={"add": True})
    if way == "handler":
        script = (call("recall_cases", query="2 + 3"), *script)
        agent = create_agent(model(*script), [add, memory.tool()], middleware=[approval], checkpointer=saver)
    else:
        agent = create_agent(model(*script), [add], middleware=[memory.middleware(), approval], checkpointer=saver)
    return agent, dict(THREAD) if way == "middleware" else {**THREAD, "callbacks": [memory.callback]}


def rewards(memory: CascadeMemory) -> list[float]:
    memory.sync()
    return [value for value, _ in memory.engine.episodes.rewards()]


@pytest.mark.parametrize("way", WAYS)
def test_an_approved_call_goes_on_in_the_same_episode(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way)
    out = agent.invoke(ask(), config)
    assert out["__interrupt__"]
    assert rewards(judged) == [], "waiting for somebody is not the end"
    assert len(judged.episodes.pending()) == 1
    agent.invoke(decide("approve"), config)
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == judged.stats().recalls == 1
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    assert [(step.tool, step.observation) for step in case.solution.steps] == [("add", "5")]
    assert judged.callback.open_runs == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_rejected_call_is_part_of_the_trajectory(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way, call("add", a=2, b=3), "I may not add, but it is 5.")
    agent.invoke(ask(), config)
    agent.invoke(decide("reject"), config)
    assert rewards(judged) == [1.0]
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    (step,) = case.solution.steps
    assert step.tool == "add"
    assert "reject" in step.observation.lower()
    assert step.failed


@pytest.mark.parametrize("way", WAYS)
def test_two_interrupts_are_still_one_episode(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way, call("add", a=2, b=3), call("add", a=5, b=0), "It is 5.")
    agent.invoke(ask(), config)
    assert agent.invoke(decide("approve"), config)["__interrupt__"]
    assert rewards(judged) == []
    agent.invoke(decide("approve"), config)
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == 1
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    assert len(case.solution.steps) == 2


@pytest.mark.parametrize("way", WAYS)
def test_something_new_on_the_thread_abandons_what_waited(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way)
    agent.invoke(ask(), config)
    agent.invoke(ask("forget it; what is 2 + 3 + 0?"), config)
    assert rewards(judged) == [], "censored, not counted as 0"
    assert judged.stats().censored == 1
    agent.invoke(decide("approve"), config)
    assert rewards(judged) == [1.0]
    assert judged.stats().episodes == 2
    assert judged.episodes.pending() == []


@pytest.mark.parametrize("way", WAYS)
def test_an_error_after_a_resume_is_an_error_of_the_same_episode(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way, call("add", a=2, b=3), ValueError("no model"))
    agent.invoke(ask(), config)
    with pytest.raises(ValueError, match="no model"):
        agent.invoke(decide("approve"), config)
    assert rewards(judged) == []
    assert judged.stats().episodes == 1
    assert judged.stats().censored == (0 if way == "middleware" else 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_checkpoint_played_again_pays_nothing_twice(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way)
    agent.invoke(ask(), config)
    agent.invoke(decide("approve"), config)
    assert rewards(judged) == [1.0]
    before_the_answer = next(
        state for state in agent.get_state_history(THREAD) if state.next and state.values["messages"][-1].type == "tool"
    )
    agent.invoke(None, {**config, **before_the_answer.config})
    assert rewards(judged) == [1.0]
    assert judged.episodes.pending() == []
    assert judged.stats().episodes == 1
    assert judged.health().ok


@pytest.mark.parametrize("way", WAYS)
def test_a_task_played_again_from_its_beginning_is_a_new_episode(judged: CascadeMemory, saver: SqliteSaver, way: str):
    agent, config = build(judged, saver, way)
    agent.invoke(ask(), config)
    agent.invoke(decide("approve"), config)
    start = list(agent.get_state_history(THREAD))[-1]
    agent.invoke(None, {**config, **start.config})
    agent.invoke(decide("approve"), config)
    assert rewards(judged) == [1.0, 1.0]
    assert judged.stats().cases == 1, "the same solution is counted, not stored twice"
    assert judged.episodes.pending() == []


def test_a_handler_attached_twice_resumes_once_and_keeps_what_was_done_before(judged: CascadeMemory, saver: SqliteSaver):
    agent, _ = build(judged, saver, "handler", call("add", a=2, b=3), call("add", a=5, b=0), "It is 5.")
    outer = RunnableLambda(lambda asked, config: agent.invoke(asked, config)["messages"][-1].text)
    twice = outer.with_config(callbacks=[judged.callback])
    config: Any = {**THREAD, "callbacks": [judged.callback]}
    agent.invoke(ask(), {**config})
    agent.invoke(decide("approve"), {**config})
    twice.with_config(configurable=THREAD["configurable"]).invoke(decide("approve"), config)
    assert rewards(judged) == [1.0]
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    assert [step.arguments for step in case.solution.steps] == [{"a": 2, "b": 3}, {"a": 5, "b": 0}]


PROGRAM = """
    import sys
    from pathlib import Path
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.tools import tool
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import Command
    from scripted import call, model
    from cascade_memory.langchain import CascadeMemory

    folder, way, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

    @tool
    def add(a: int, b: int) -> int:
        "Add."
        return a + b

    memory = CascadeMemory(
        folder / "memory", embedder="hashing", learn="inline", reward_fn=lambda episode: float("5" in episode.answer)
    )
    approval = HumanInTheLoopMiddleware(interrupt_on={"add": True})
    script = [call("add", "I add.", a=2, b=3), "It is 5."]
    config = {"configurable": {"thread_id": "t1"}}
    if way != "middleware":
        config["callbacks"] = [memory.callback]
    with SqliteSaver.from_conn_string(str(folder / "graph.sqlite3")) as saver:
        if way == "handler":
            agent = create_agent(
                model(call("recall_cases", query="2 + 3"), *script), [add, memory.tool()], middleware=[approval],
                checkpointer=saver,
            )
        else:
            agent = create_agent(model(*script), [add], middleware=[memory.middleware(), approval], checkpointer=saver)
        if what == "ask":
            agent.invoke({"messages": [("user", "what is 2 + 3?")]}, config)
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert memory.health().ok, memory.health()
    memory.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", [*(pytest.param(way, marks=pytest.mark.long) for way in WAYS[:2]), WAYS[2]])
def test_a_killed_process_is_resumed_by_another_in_the_same_episode(tmp_path: Path, make: Make, way: str):
    script = tmp_path / "program.py"
    helpers = Path(__file__).parent.parent / "helpers"
    script.write_text(f"import sys; sys.path.insert(0, {str(helpers)!r})\n" + textwrap.dedent(PROGRAM))
    asked = subprocess.run([sys.executable, script, tmp_path, way, "ask"], capture_output=True, text=True, timeout=120)
    assert asked.returncode == -9, asked.stderr
    resumed = subprocess.run([sys.executable, script, tmp_path, way, "resume"], capture_output=True, text=True, timeout=120)
    assert resumed.returncode == 0, resumed.stderr
    memory = make(tmp_path / "memory")
    assert rewards(memory) == [1.0]
    assert memory.stats().episodes == memory.stats().recalls == 1
    (case,) = memory.engine.cases.search("what is 2 + 3?").cases
    assert [(step.tool, step.observation) for step in case.solution.steps] == [("add", "5")]


def test_a_graph_inside_a_tool_may_wait_for_itself(judged: CascadeMemory, saver: SqliteSaver):
    """Its interrupt is the tool's affair: the outer run goes on, and ends."""

    @tool
    def confirm() -> str:
        """Ask somebody."""
        return str(interrupt("sure?"))

    inner = create_agent(model(call("confirm"), "yes"), [confirm], checkpointer=saver)

    @tool
    def delegate() -> str:
        """Ask another agent."""
        inner_config = {"configurable": {"thread_id": "inner"}}
        out = inner.invoke(ask("sub"), inner_config)
        return "waits" if "__interrupt__" in out else "done"

    outer = create_agent(model(call("recall_cases", query="2 + 3"), call("delegate"), "It is 5."), [delegate, judged.tool()])
    out = outer.invoke(ask(), {"callbacks": [judged.callback]})
    if "__interrupt__" in out:  # LangGraph 1.2.3: what waits inside holds up the outer graph as well
        assert rewards(judged) == []
        assert [episode.ended for episode in judged.episodes.pending()] == ["interrupted"]
        return
    assert rewards(judged) == [1.0]
    assert judged.callback.open_runs == 0
