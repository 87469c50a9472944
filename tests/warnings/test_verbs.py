"""The life of a warning: a failed run makes it, agents are warned, people decide, and it goes with what it came from."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from inside import engine_of
from warned import CALL, MISTAKE, OTHER, TASK, about_to, fail, mistaken
from warning_rows import rows_of

from cascade_memory import CascadeMemory, Ranking, Retention, Step, WarningOptions
from cascade_memory.capabilities.warnings.describing import advice_text
from cascade_memory.domain.transcript import is_rendered
from cascade_memory.errors import InvalidInput, StoreBusy, UnknownWarning


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as made:
        yield made


# -- what makes one ----------------------------------------------------------------------------------------------------


def test_a_failed_run_becomes_a_warning_and_the_same_mistake_is_the_same_one(memory: CascadeMemory):
    fail(memory)
    fail(memory, "count the customers", source="human")
    (warning,) = memory.warnings.all()
    assert (warning.tool, warning.happened, warning.times, warning.source) == ("sql", "no such column: nme", 2, "human")
    assert warning.query == "count the customers"
    assert warning.state == "active"


def test_an_agent_s_own_verdict_makes_none(memory: CascadeMemory):
    fail(memory, source="agent")
    assert memory.warnings.all() == []
    assert about_to(memory, tries=3) is None


def test_nor_do_steps_that_only_the_agent_reports(memory: CascadeMemory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 0.0, solution=[MISTAKE], source="agent")
    memory.reward(recall.episode_id, 0.0, source="host")
    assert memory.warnings.all() == []


def test_nor_does_a_success_nor_a_text_nor_an_error_of_the_world(memory: CascadeMemory):
    memory.recall(TASK).reward(1.0, solution=[MISTAKE], source="env")
    memory.recall(TASK).reward(0.0, solution="SELECT nme FROM t", source="env")
    fail(memory, TASK, mistaken("nme", seen="HTTP 429: too many requests"))
    fail(memory, TASK, Step(action="look", observation="a table"))
    assert memory.warnings.all() == []


def test_a_correction_blames_the_run_that_failed_and_not_the_right_solution(memory: CascadeMemory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 1.0, solution=[MISTAKE], source="env")
    memory.review.correct(recall.episode_id, [Step(tool="sql", arguments={"q": "SELECT name FROM t"}, observation="3 rows")])
    (warning,) = memory.warnings.all()
    assert warning.action == MISTAKE.action
    assert warning.instead == 'sql({"q": "SELECT name FROM t"})'


def test_switched_off_nothing_is_kept_or_checked():
    with CascadeMemory(embedder="hashing", learn="inline", warnings=False) as memory:
        fail(memory)
        assert memory.warnings.all() == []
        assert about_to(memory, tries=3) is None


def test_the_newest_failures_are_kept():
    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(keep=5)) as memory:
        for letter in "abcdefghijklmno":
            fail(memory, TASK, mistaken(f"column_{letter}"))
        kept = [warning.happened[-1] for warning in memory.warnings.all()]
        assert len(kept) <= 9
        assert kept[:5] == ["o", "n", "m", "l", "k"]


# -- being warned ------------------------------------------------------------------------------------------------------


def test_an_agent_that_is_about_to_repeat_it_is_warned(memory: CascadeMemory):
    fail(memory)
    advice = about_to(memory, "count the customers")
    assert advice is not None
    assert str(advice) == advice.text
    assert "no such column: nme" in advice.text
    assert not advice.locked
    assert is_rendered(advice.text)  # so it becomes no step of a solution
    assert about_to(memory, **OTHER, tries=3) is None
    assert about_to(memory, tool="other", arguments=CALL["arguments"], tries=3) is None


def test_whoever_insists_is_not_warned_again(memory: CascadeMemory):
    fail(memory)
    advice = about_to(memory)
    assert advice is not None
    assert memory.warnings.check(advice.episode_id, **CALL) is None


def test_the_same_call_gets_the_same_answer_again(memory: CascadeMemory):
    fail(memory)
    seen = set()
    for number in range(80):  # chance lets about one in ten without a warning
        episode_id = memory.recall(TASK).episode_id
        first = memory.warnings.check(episode_id, **CALL, call_id=f"call-{number}")
        again = memory.warnings.check(episode_id, **CALL, call_id=f"call-{number}")
        assert first == again
        assert memory.warnings.check(episode_id, **CALL, call_id="another") is None
        seen.add(first is None)
    assert seen == {True, False}


def test_an_episode_gets_at_most_two_warnings(memory: CascadeMemory):
    columns = [f"column_{letter}" for letter in "abcdefgh"]
    for column in columns:
        fail(memory, TASK, mistaken(column))
    counts = []
    for _ in range(5):
        episode_id = memory.recall(TASK).episode_id
        calls = [{"tool": "sql", "arguments": {"q": f"SELECT {column} FROM t"}} for column in columns]
        counts.append(sum(memory.warnings.check(episode_id, **call) is not None for call in calls))
    assert max(counts) == 2


def test_with_a_lock_the_warning_comes_as_often_as_the_agent_insists():
    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(lock=True)) as memory:
        fail(memory)
        advice = about_to(memory)
        assert advice is not None
        assert advice.locked
        assert memory.warnings.check(advice.episode_id, **CALL) == advice


def test_the_nearest_task_is_warned_of_first(memory: CascadeMemory):
    fail(
        memory, "paint the old fence green", Step(action="put it on a shelf", observation="it fell off the shelf", failed=True)
    )
    fail(memory, "cook soup for dinner", Step(action="put it on a table", observation="the table broke", failed=True))
    for task, said in (("cook soup for lunch", "the table broke"), ("paint the old fence red", "it fell off the shelf")):
        advice = about_to(memory, task, action="put it on a table or a shelf")
        assert advice is not None
        assert advice.warning.happened == said


def test_held_out_episodes_are_not_warned():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.99)) as memory:
        fail(memory)
        arms = [memory.recall(TASK) for _ in range(20)]
        assert all(memory.warnings.check(recall.episode_id, **CALL) is None for recall in arms if recall.arm == "holdout")


def test_nor_are_episodes_that_are_over_or_unknown_or_of_others(memory: CascadeMemory):
    episode_id = fail(memory)
    assert memory.warnings.check(episode_id, **CALL) is None
    assert memory.warnings.check("no such episode", **CALL) is None
    fail(memory)
    elsewhere = memory.acting(namespace="other").recall(TASK).episode_id
    assert memory.warnings.check(elsewhere, **CALL) is None
    assert memory.acting(namespace="other").warnings.check(elsewhere, **CALL) is None
    assert memory.health().ok


def test_in_an_event_loop(memory: CascadeMemory):
    async def run() -> None:
        assert await memory.warnings.acheck(memory.recall(TASK).episode_id, **CALL) is None
        fail(memory)
        for _ in range(60):
            if await memory.warnings.acheck(memory.recall(TASK).episode_id, **CALL) is not None:
                return
        raise AssertionError("nobody was warned")

    asyncio.run(run())


def test_misuse_is_refused_and_odd_texts_are_not(memory: CascadeMemory):
    fail(memory)
    episode_id = memory.recall(TASK).episode_id
    for call in ({}, {"action": ""}, {"action": 3}, {"tool": 3}, {"tool": "sql", "arguments": "x"}):
        with pytest.raises(InvalidInput):
            memory.warnings.check(episode_id, **call)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        memory.warnings.check(3, action="x")  # type: ignore[arg-type]
    assert memory.warnings.check(episode_id, "bell \x07 and \x1b[31m red") is None
    assert memory.warnings.check(episode_id, tool="sql", arguments={"q": "\x00", "n": float("nan"), "o": object()}) is None
    assert memory.warnings.check(episode_id, "x" * 300_000) is None
    assert memory.health().ok


def test_a_memory_that_fails_says_nothing_and_counts_it(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    fail(memory)
    assert about_to(memory) is not None

    def busy(*_: object, **__: object) -> object:
        raise StoreBusy("another process is writing")

    monkeypatch.setattr(rows_of(memory), "note_check", busy)
    assert about_to(memory, tries=3) is None
    assert memory.health().failures == {"check": 3}


def test_calls_that_are_made_at_once_get_no_more_warnings_than_an_episode_may(memory: CascadeMemory):
    columns = ("amount", "born", "city", "date", "email", "fax")
    for column in columns:
        fail(memory, TASK, mistaken(column))
    for warning in memory.warnings.all():
        memory.warnings.restore(warning.id)
    warnings = rows_of(memory)
    read, together = warnings.checks, threading.Barrier(len(columns))

    def slow(episode_id: str) -> object:
        found = read(episode_id)
        together.wait(20)
        return found

    said = list[object]()
    episode_id = memory.recall(TASK).episode_id

    def ask(column: str) -> None:
        said.append(memory.warnings.check(episode_id, tool="sql", arguments={"q": f"SELECT {column} FROM t"}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warnings, "checks", slow)
        asking = [threading.Thread(target=ask, args=(column,)) for column in columns]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
    assert memory.health().ok
    assert len(said) == len(columns)
    assert sum(one is not None for one in said) <= 2


def test_threads_that_ask_at_once_warn_once(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        fail(memory)
        memory.sync()
        for _ in range(5):
            episode_id, said = memory.recall(TASK).episode_id, list[object]()
            threads = [
                threading.Thread(target=lambda e=episode_id, s=said: s.append(memory.warnings.check(e, **CALL)))
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(said) == 8
            assert sum(one is not None for one in said) <= 1
        assert memory.health().ok


def test_another_process_s_failures_and_checks_are_seen(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        fail(memory)
        (before,) = memory.warnings.all()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        advice = about_to(memory)
        assert advice is not None
        assert advice.warning.id == before.id
        assert memory.warnings.check(advice.episode_id, **CALL) is None


# -- deciding ----------------------------------------------------------------------------------------------------------


def test_a_person_retires_restores_and_advises_and_takes_it_back(memory: CascadeMemory):
    fail(memory)
    (warning,) = memory.warnings.all()
    assert memory.acting(actor="ann").warnings.retire(warning.id, note="the schema has changed")
    assert memory.warnings.all()[0].state == "retired"
    assert about_to(memory, tries=20) is None
    memory.review.undo(next(memory.review.audit()).id)
    assert memory.warnings.all()[0].state == "active"
    assert about_to(memory) is not None
    assert memory.warnings.retire(warning.id)
    assert memory.acting(actor="ann").warnings.restore(warning.id)
    assert about_to(memory) is not None
    assert memory.acting(actor="ann").warnings.advise(warning.id, "the column is called name")
    advice = about_to(memory)
    assert advice is not None
    assert "Advice: the column is called name" in advice.text
    with pytest.raises(UnknownWarning):
        memory.warnings.retire("no such warning")


def test_they_are_listed_latest_first_or_nearest_first(memory: CascadeMemory):
    fail(memory, "paint the old fence green", mistaken("green"))
    fail(memory, "cook soup for dinner", mistaken("soup"))
    assert [one.happened for one in memory.warnings.all()] == ["no such column: soup", "no such column: green"]
    assert [one.happened for one in memory.warnings.all(near="paint a fence", k=1)] == ["no such column: green"]


def test_one_is_what_the_list_says_of_it_and_goes_with_it(memory: CascadeMemory):
    fail(memory)
    fail(memory, "count the customers")
    fail(memory, TASK, mistaken("adress"))
    listed = memory.warnings.all()
    assert [memory.warnings.get(one.id) for one in listed] == listed
    memory.warnings.advise(listed[0].id, "the column is called address")
    assert memory.warnings.get(listed[0].id) == memory.warnings.all()[0]
    assert memory.warnings.get(listed[0].id).advice == "the column is called address"  # type: ignore[union-attr]
    memory.forget(everything=True)
    assert memory.warnings.get(listed[0].id) is None
    assert memory.warnings.get("unknown") is None
    assert memory.acting(namespace="elsewhere").warnings.get(listed[0].id) is None


def test_a_model_writes_advice_once_for_each_new_warning():
    asked: list[str] = []

    def distil(warning: object) -> str | None:
        asked.append(warning.happened)  # type: ignore[attr-defined]
        return None if "soup" in asked[-1] else "ask for the schema first"

    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(distil=distil)) as memory:
        fail(memory)
        fail(memory)
        fail(memory, TASK, mistaken("soup"))
        memory.sync()
        assert sorted(asked) == ["no such column: nme", "no such column: soup"]
        assert {one.happened[-3:]: one.advice for one in memory.warnings.all()} == {
            "oup": None,
            "nme": "ask for the schema first",
        }
        assert memory.health().ok


def test_a_model_that_fails_is_counted_and_stops_nothing():
    def distil(_: object) -> str:
        raise RuntimeError("no model")

    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(distil=distil)) as memory:
        fail(memory)
        assert memory.warnings.all()[0].advice is None
        assert memory.health().failures == {"warnings": 1}


# -- going -------------------------------------------------------------------------------------------------------------


def test_it_goes_with_the_episode_that_it_came_from(memory: CascadeMemory):
    episode_id = fail(memory)
    assert about_to(memory) is not None
    memory.forget(episode_id=episode_id)
    assert memory.warnings.all() == []
    assert about_to(memory, tries=5) is None


def test_it_goes_when_the_verdict_is_replaced(memory: CascadeMemory):
    episode_id = fail(memory)
    assert about_to(memory) is not None
    memory.reward(episode_id, 1.0, solution=[MISTAKE], source="human", overwrite=True)
    assert memory.warnings.all() == []
    assert about_to(memory, tries=5) is None


def test_a_verdict_that_comes_back_brings_it_back(memory: CascadeMemory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 0.0, solution=[MISTAKE], source="env")
    memory.review.correct(recall.episode_id, "SELECT name FROM t")
    memory.review.undo(next(memory.review.audit()).id)
    (warning,) = memory.warnings.all()
    assert (warning.times, warning.action) == (1, MISTAKE.action)


def test_it_expires_with_the_memory_s_ttl():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(ttl=1_000.0)) as memory:
        fail(memory)
        assert about_to(memory) is not None
        engine_of(memory).oldest = lambda: 2e10  # type: ignore[method-assign] - much later
        assert memory.warnings.all() == []
        assert about_to(memory, tries=5) is None


def test_a_fault_in_blame_costs_no_reward(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr("cascade_memory.capabilities.warnings.blaming.blamed_step", broken)
    fail(memory)
    assert memory.stats().rewards == 1
    assert memory.health().failures == {"blame": 1}


def test_the_text_of_a_warning_is_always_the_same(memory: CascadeMemory):
    fail(memory)
    (warning,) = memory.warnings.all()
    assert advice_text(warning) == advice_text(warning)
