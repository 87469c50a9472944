"""An agent that is about to repeat a known mistake is warned before the tool runs, once; then it does what it wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from mistaken_agents import ASK, Database, heeding, query, tool_messages
from mistakes import ERROR, RIGHT, TASK, WRONG, is_warning, known_mistake, solved
from scripted import ScriptedModel, model
from warning_rows import rows_of

from cascade_memory import Ranking
from cascade_memory.errors import StoreError
from cascade_memory.langchain import CascadeMemory

pytestmark = pytest.mark.usefixtures("always_warned")

Make = Callable[..., CascadeMemory]


def agent(memory: CascadeMemory, database: Database, *script: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    played = model(*script)
    middleware = [memory.middleware(), *options.pop("more", ())]
    return create_agent(played, [database.tool], middleware=middleware, **options), played


@pytest.fixture
def memory(make: Make) -> CascadeMemory:
    memory = make(reward_fn=solved, ranking=Ranking(abstain=False))
    known_mistake(memory)
    return memory


def test_a_failing_call_is_blamed_when_the_reward_comes_and_the_next_agent_is_warned(make: Make):
    memory, database = make(reward_fn=solved), Database()
    first, _ = agent(memory, database, query(WRONG), "I do not know.")
    first.invoke({"messages": [("user", "who works in Paris?")]})
    (warning,) = memory.warnings.all()
    assert (warning.tool, warning.happened, warning.why, warning.source) == ("query", ERROR, "failed", "host")
    memory.warnings.restore(warning.id)
    second, shown = agent(memory, database, query(WRONG), heeding, "Ann does.")
    second.invoke(ASK)
    assert is_warning(shown.seen[1][-1].text)
    assert database.ran == [WRONG, RIGHT]


def test_the_tool_has_not_run_when_the_model_is_warned_and_runs_if_it_insists(memory: CascadeMemory):
    database = Database()
    insisting, shown = agent(memory, database, query(WRONG), query(WRONG), query(WRONG), "I give up.")
    out = insisting.invoke(ASK)
    warning, *errors = tool_messages(out["messages"])
    assert is_warning(warning.text)
    assert (warning.status, warning.name) == ("error", "query")
    assert [one.text for one in errors] == [ERROR, ERROR]
    assert database.ran == [WRONG, WRONG]
    assert [is_warning(messages[-1].text) for messages in shown.seen] == [False, True, False, False]
    (check,) = rows_of(memory).checks(out["cascade_episode_id"])
    assert check.warned


async def test_asynchronous_agents_are_warned_as_well(memory: CascadeMemory):
    database = Database()
    heeded, _ = agent(memory, database, query(WRONG), heeding, "Ann does.")
    out = await heeded.ainvoke(ASK)
    assert is_warning(tool_messages(out["messages"])[0].text)
    assert database.ran == [RIGHT]
    assert memory.episodes.get(out["cascade_episode_id"]).reward == 1.0


def test_in_a_stream_the_warning_is_the_tools_message(memory: CascadeMemory):
    database = Database()
    heeded, _ = agent(memory, database, query(WRONG), heeding, "Ann does.")
    updates = [update["tools"]["messages"][0] for update in heeded.stream(ASK, stream_mode="updates") if "tools" in update]
    assert [is_warning(message.text) for message in updates] == [True, False]
    assert database.ran == [RIGHT]


async def test_many_agents_at_once_are_warned_each_in_its_own_episode(memory: CascadeMemory):
    database = Database()
    heeded, _ = agent(memory, database, query(WRONG), heeding, "Ann does.")
    outs = await heeded.abatch([{"messages": [("user", f"who works in city {n}?")]} for n in range(8)])
    silent = 0  # chance lets one of ten episodes be without a warning
    for out in outs:
        (check,) = rows_of(memory).checks(out["cascade_episode_id"])
        assert [is_warning(one.text) for one in tool_messages(out["messages"])] == ([True, False] if check.warned else [False])
        silent += not check.warned
    assert sorted(database.ran) == sorted([RIGHT] * (8 - silent) + [WRONG] * silent)
    assert silent <= 2


def test_calls_of_one_turn_get_the_same_answer(memory: CascadeMemory):
    """The model has seen no warning before all of them are done; the next turn runs what it insists on."""
    database = Database()
    both = query(WRONG, WRONG, RIGHT)
    insisting, shown = agent(memory, database, both, both, "Ann does.")
    insisting.invoke(ASK)
    first, second = shown.seen[1][-3:], shown.seen[2][-3:]
    assert [is_warning(one.text) for one in first] == [True, True, False]
    assert [is_warning(one.text) for one in second] == [False, False, False]
    assert sorted(database.ran) == sorted([RIGHT, WRONG, WRONG, RIGHT])


def test_a_warning_is_no_step_of_a_solution_and_nobody_is_blamed_for_it(memory: CascadeMemory):
    database = Database()
    heeded, _ = agent(memory, database, query(WRONG), heeding, "Ann does.")
    out = heeded.invoke(ASK)
    solution = memory.episodes.get(out["cascade_episode_id"]).solution
    assert [step.arguments for step in solution.steps] == [{"sql": RIGHT}]
    assert not is_warning(solution.as_text())
    gave_up, _ = agent(memory, database, query(WRONG), "I give up.")
    gave_up.invoke(ASK)
    assert [one.times for one in memory.warnings.all()] == [1]
    assert ERROR not in memory.recall(TASK).render()


def test_a_warning_is_no_step_even_if_the_history_was_summarised(memory: CascadeMemory):
    from langchain.agents.middleware import SummarizationMiddleware

    summary = SummarizationMiddleware(model=model("in short"), trigger=("messages", 4), keep=("messages", 1))
    turns = iter([query(WRONG), query(RIGHT), query(RIGHT), AIMessage("Ann does.")])
    heeded, _ = agent(memory, Database(), lambda _: next(turns), more=[summary])
    out = heeded.invoke(ASK)
    steps = memory.episodes.get(out["cascade_episode_id"]).solution.steps
    assert {step.arguments["sql"] for step in steps} == {RIGHT}


@pytest.mark.parametrize("fault", [StoreError("the disk is gone"), ValueError("a bug")])
async def test_a_failing_memory_changes_nothing(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch, fault: Exception):
    def broken(*_: Any, **__: Any) -> Any:
        raise fault

    monkeypatch.setattr(rows_of(memory), "note_check", broken)
    monkeypatch.setattr(rows_of(memory), "checks", broken)
    database = Database()
    for ask in (lambda agent: agent.invoke(ASK), lambda agent: asyncio.run(agent.ainvoke(ASK))):
        insisting, _ = agent(memory, database, query(WRONG), "I give up.")
        out = await asyncio.to_thread(ask, insisting)
        assert [one.text for one in tool_messages(out["messages"])] == [ERROR]
    assert database.ran == [WRONG, WRONG]
    assert not memory.health().ok


async def test_the_errors_of_a_tool_go_on_to_its_agent(memory: CascadeMemory):
    database = Database(fails=RuntimeError)
    insisting, _ = agent(memory, database, query(WRONG), query(WRONG))
    with pytest.raises(RuntimeError, match=ERROR):
        insisting.invoke(ASK)
    with pytest.raises(RuntimeError, match=ERROR):
        await insisting.ainvoke(ASK)
    assert database.ran == [WRONG, WRONG]


def test_a_call_that_ends_the_run_is_blamed_if_the_handler_watches(make: Make):
    memory = make(reward_fn=lambda episode: 0.0 if episode.status == "error" else None)
    failing, _ = agent(memory, Database(fails=RuntimeError), query(WRONG))
    with pytest.raises(RuntimeError):
        failing.invoke(ASK, {"callbacks": [memory.callback]})
    (warning,) = memory.warnings.all()
    assert warning.happened == f"RuntimeError: {ERROR}"


def test_without_warnings_nothing_is_kept_and_nobody_is_warned(make: Make):
    memory, database = make(reward_fn=solved, warnings=False), Database()
    failing, _ = agent(memory, database, query(WRONG), "I do not know.")
    for _ in range(2):
        failing.invoke(ASK)
    assert database.ran == [WRONG, WRONG]
    assert memory.warnings.all() == []


def test_a_locked_action_never_runs(make: Make):
    from cascade_memory import WarningOptions

    memory, database = make(reward_fn=solved, warnings=WarningOptions(lock=True)), Database()
    known_mistake(memory)
    insisting, shown = agent(memory, database, query(WRONG), query(WRONG), "I give up.")
    insisting.invoke(ASK)
    assert database.ran == []
    assert [is_warning(messages[-1].text) for messages in shown.seen] == [False, True, True]


def test_in_a_block_the_warning_is_for_the_block(memory: CascadeMemory):
    database = Database()
    heeded, _ = agent(memory, database, query(WRONG), heeding, "Ann does.")
    with memory.acting(namespace="another").episode(TASK) as elsewhere:
        heeded.invoke(ASK)
        assert database.ran == [WRONG], "there nothing is known"
    with memory.episode(TASK) as episode:
        heeded.invoke(ASK)
        assert database.ran == [WRONG, RIGHT]
    (check,) = rows_of(memory).checks(episode.id)
    assert check.warned
    assert rows_of(memory).checks(elsewhere.id) == []
