"""Clients ask before an action whether it is a known mistake, and report the steps that warnings are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import asked, call, plain, stdio
from mistakes import ERROR, RIGHT, TASK, WRONG, is_warning, known_mistake, wrong_step
from warning_rows import rows_of

from cascade_memory import CascadeMemory, Ranking, WarningOptions
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.answers import DoneStep
from cascade_memory.mcp_server.verbs import NOTHING_KNOWN, Verbs

pytestmark = pytest.mark.usefixtures("always_warned")

STEP = {"tool": "query", "arguments": {"sql": WRONG}, "observation": ERROR, "failed": True}


@pytest.fixture
def memory(folder: Path):
    with CascadeMemory(folder, k=1, ranking=Ranking(abstain=False), learn="inline") as memory:
        yield memory


@pytest.fixture
def knowing(folder: Path) -> Path:
    """A folder whose memory knows the mistake."""
    with CascadeMemory(folder, learn="inline") as memory:
        known_mistake(memory)
    return folder


def ask(verbs: Verbs, sql: str, episode_id: str | None = None) -> dict[str, Any]:
    return verbs.check_action(episode_id or verbs.recall_cases(TASK)["episode_id"], "query", {"sql": sql})


def test_a_known_mistake_is_told_once_in_an_episode(memory: CascadeMemory):
    warning = known_mistake(memory)
    verbs = Verbs(memory)
    episode_id = verbs.recall_cases(TASK)["episode_id"]
    assert ask(verbs, RIGHT, episode_id) == {"known": False, "about": NOTHING_KNOWN}
    told = ask(verbs, WRONG, episode_id)
    assert (told["known"], told["warning_id"]) == (True, warning.id)
    assert is_warning(told["warning"])
    assert "do it anyway" in told["about"]
    assert ask(verbs, WRONG, episode_id)["known"] is False
    assert ask(verbs, WRONG)["known"] is True, "another episode"


@pytest.mark.parametrize("lock", [True, False])
def test_a_warning_on_a_question_does_not_say_that_something_was_about_to_be_done(folder: Path, lock: bool):
    with CascadeMemory(folder, warnings=WarningOptions(lock=lock), learn="inline") as memory:
        known_mistake(memory)
        told = ask(Verbs(memory), WRONG)
    assert told["warning"].startswith("This action failed before. Everything between the ")
    assert "now" not in told["warning"].splitlines()[0].split()
    assert "do the same again" not in told["warning"]
    assert told["warning"].endswith(
        "It is locked: do something else." if lock else "You may do it anyway if you have a reason."
    )


def test_an_action_as_text_is_known_as_well(memory: CascadeMemory):
    verbs = Verbs(memory, trusted=True)
    done = [DoneStep(action="open the safe", observation="the alarm rings", failed=True)]
    verbs.report_outcome(verbs.recall_cases("rob the bank")["episode_id"], 0, steps=done)
    (warning,) = memory.warnings.all()
    memory.warnings.restore(warning.id)
    told = verbs.check_action(verbs.recall_cases("rob the other bank")["episode_id"], action="open the safe")
    assert "the alarm rings" in told["warning"]


def test_reported_steps_are_blamed_once_somebody_has_confirmed_the_failure(memory: CascadeMemory):
    verbs = Verbs(memory)
    episode_id = verbs.recall_cases(TASK)["episode_id"]
    verbs.report_outcome(episode_id, 0, "I gave up", steps=[DoneStep(**STEP)])  # type: ignore[arg-type]
    assert memory.warnings.all() == [], "an agent's own word is none"
    (seen,) = memory.review.reported()
    (step,) = seen.solution.steps
    assert (step.tool, dict(step.arguments), step.observation, step.failed) == ("query", {"sql": WRONG}, ERROR, True)
    memory.reward(episode_id, 0.0, source="human", confirms=seen.fingerprint)
    (warning,) = memory.warnings.all()
    assert (warning.tool, warning.happened, warning.source) == ("query", ERROR, "human")


def test_the_steps_of_a_trusted_agent_count_at_once_and_a_success_becomes_a_case(memory: CascadeMemory):
    verbs = Verbs(memory, trusted=True)
    verbs.report_outcome(verbs.recall_cases(TASK)["episode_id"], 0, steps=[DoneStep(**STEP)])  # type: ignore[arg-type]
    assert len(memory.warnings.all()) == 1
    done = [
        DoneStep(tool="recall_cases", arguments={"query": TASK}, observation="{}"),
        DoneStep(tool="check_action", observation="known"),
        DoneStep(tool="query", arguments={"sql": RIGHT}, observation="Ann"),
    ]
    answer = verbs.report_outcome(verbs.recall_cases(TASK)["episode_id"], 1, "Ann", steps=done)
    solution = memory.cases.get(answer["case_id"]).solution
    assert [one.tool for one in solution.steps] == ["query"], "what the memory itself said is nothing new"
    assert solution.answer == "Ann"


def test_a_warning_is_never_part_of_what_is_stored(memory: CascadeMemory):
    known_mistake(memory)
    verbs = Verbs(memory, trusted=True)
    episode_id = verbs.recall_cases(TASK)["episode_id"]
    told = ask(verbs, WRONG, episode_id)["warning"]
    done = [
        DoneStep(tool="query", arguments={"sql": WRONG}, observation=told, failed=True),
        DoneStep(tool="query", arguments={"sql": RIGHT}, observation="Ann"),
    ]
    answer = verbs.report_outcome(episode_id, 1, "Ann", steps=done)
    assert [one.observation for one in memory.cases.get(answer["case_id"]).solution.steps] == ["Ann"]


def test_an_episode_that_is_not_here_is_refused_with_the_same_words_as_by_its_neighbour(memory: CascadeMemory):
    verbs = Verbs(memory)
    with pytest.raises(InvalidInput, match="there is no episode") as by_check:
        verbs.check_action("nowhere", "query", {"sql": WRONG})
    with pytest.raises(InvalidInput) as by_report:
        verbs.report_outcome("nowhere", 1)
    assert str(by_check.value) == str(by_report.value)


def test_the_episode_of_another_client_or_namespace_is_refused(memory: CascadeMemory, folder: Path):
    known_mistake(memory)
    ann, bob = Verbs(memory, actor="ann"), Verbs(memory, actor="bob")
    episode_id = ann.recall_cases(TASK)["episode_id"]
    with pytest.raises(InvalidInput, match="there is no episode"):
        ask(bob, WRONG, episode_id)
    with (
        CascadeMemory(folder, namespace="another", learn="inline") as other,
        pytest.raises(InvalidInput, match="there is no episode"),
    ):
        ask(Verbs(other), WRONG, episode_id)
    assert ask(ann, WRONG, episode_id)["known"] is True


@pytest.mark.parametrize("given", [{}, {"action": ""}, {"tool": ""}])
def test_a_question_about_nothing_is_refused(memory: CascadeMemory, given: dict[str, str]):
    verbs = Verbs(memory)
    with pytest.raises(InvalidInput, match="needs the action"):
        verbs.check_action(verbs.recall_cases(TASK)["episode_id"], **given)


def test_too_many_steps_are_refused(memory: CascadeMemory):
    verbs = Verbs(memory)
    with pytest.raises(InvalidInput, match="200 steps at most"):
        verbs.report_outcome(verbs.recall_cases(TASK)["episode_id"], 0, steps=[DoneStep(action="go")] * 201)


def test_a_failing_memory_knows_nothing(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    known_mistake(memory)
    monkeypatch.setattr(rows_of(memory), "checks", broken)
    monkeypatch.setattr(rows_of(memory), "note_check", broken)
    assert ask(Verbs(memory), WRONG)["known"] is False
    assert not memory.health().ok


def test_a_locked_action_is_said_to_be_forbidden(folder: Path):
    with CascadeMemory(folder, learn="inline", warnings=WarningOptions(lock=True)) as memory:
        known_mistake(memory)
        verbs = Verbs(memory)
        episode_id = verbs.recall_cases(TASK)["episode_id"]
        for _ in range(2):
            assert "does not allow it" in ask(verbs, WRONG, episode_id)["about"]


# -- over the wire -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--tickets", "--trust-agent-rewards"),
        *(pytest.param((one,), marks=pytest.mark.long) for one in ("--tickets", "--trust-agent-rewards")),
    ],
)
async def test_an_agent_is_warned_and_its_report_takes_steps(knowing: Path, options: tuple[str, ...]):
    async with stdio(knowing, *options) as session:
        recalled = await asked(session, "recall_cases", query=TASK)
        about = {"episode_id": recalled["episode_id"], "tool": "query"}
        told = await asked(session, "check_action", **about, arguments={"sql": WRONG})
        assert told["known"] is True
        assert is_warning(told["warning"])
        fine = await asked(session, "check_action", **about, arguments={"sql": RIGHT})
        assert fine == {"known": False, "about": NOTHING_KNOWN}
        ticket = {"ticket": recalled["ticket"]} if "--tickets" in options else {}
        report = {"episode_id": recalled["episode_id"], "reward": 0, "solution": "I gave up", "steps": [STEP]}
        await call(session, "report_outcome", **report, **ticket)
    with CascadeMemory(knowing) as memory:
        episode = memory.episodes.get(recalled["episode_id"])
        assert episode.solution.steps[0] == wrong_step()


@pytest.mark.slow
async def test_a_refused_question_is_a_sentence(knowing: Path):
    async with stdio(knowing) as session:
        answer = plain(await session.call_tool("check_action", {"episode_id": "nowhere", "tool": "query"}))
        assert answer["isError"] is True
        assert "there is no episode" in answer["content"][0]["text"]


@pytest.mark.slow
async def test_a_server_that_only_reads_offers_no_checks(knowing: Path):
    async with stdio(knowing, "--read-only") as session:
        tools = {one.name: json.dumps(plain(one)) for one in (await session.list_tools()).tools}
    assert "check_action" not in tools
