"""Warnings in what people look at: counts, reports, and notebooks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from warned import CALL, MISTAKE, TASK, about_to, fail, mistaken

from cascade_memory import Advice, CascadeMemory, FailureWarning, Step, Trust, WarningOptions
from cascade_memory.errors import InvalidInput

EVIL = "<script>alert('x')</script><img src=x onerror=y>"


def test_stats_and_report_count_the_warnings_if_there_are_any():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        assert "warnings" not in str(memory.stats()) + str(memory.report())
        fail(memory, TASK, MISTAKE)
        fail(memory, "count all customers", MISTAKE)
        fail(memory, "heat an egg", mistaken("pan"))
        episode_id = memory.acting(namespace="other").recall(TASK).episode_id
        memory.acting(namespace="other").reward(episode_id, 0.0, solution=[MISTAKE], source="env")
        assert [memory.stats(everywhere=all_).more["warnings"] for all_ in (False, True)] == [2, 3]
        assert dict(memory.stats().rows())["warnings"] == "2; memory.warnings.all() lists them"
        assert dict(memory.report().rows())["warnings"] == "2"
        assert dict(memory.report(everywhere=True).rows())["warnings"] == "3"
        memory.forget(everything=True)
        assert "warnings" not in str(memory.stats()) + str(memory.report())


@pytest.mark.parametrize("alone", [True, False])
def test_what_came_of_the_last_warning_is_seen_even_where_counting_takes_long(alone: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.capabilities.warnings.shelf.LONG", 0.0)
    monkeypatch.setattr(
        "cascade_memory.capabilities.warnings.shelf.SPARING", 1e9
    )  # where it learns, it rests for good after a count
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        (first,) = memory.warnings.all()
        for number in range(3):
            recall = memory.recall(TASK)
            memory.warnings.check(recall.episode_id, **CALL)
            memory.reward(recall.episode_id, 1.0, source="env")
            tally = (memory.warnings.get(first.id) if alone else memory.warnings.all()[0]).tally
            assert tally.warned + tally.silent == number + 1


def test_a_report_says_how_often_mistakes_were_repeated():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        episodes = 0
        while episodes < 30 or not sum(
            one.tally.silent for one in memory.warnings.all()
        ):  # chance decides, and nine in ten are warned
            episodes += 1
            recall = memory.recall(f"{TASK} {episodes}")
            warned = memory.warnings.check(recall.episode_id, **CALL) is not None
            right = Step(tool="sql", arguments={"q": "SELECT name FROM t"}, observation="3 rows")
            memory.reward(recall.episode_id, float(warned), solution=[right if warned else MISTAKE], source="env")
        report = memory.report()
        (known,) = memory.warnings.all()
        warned, silent = known.tally.warned, known.tally.silent
        assert warned + silent == episodes
        said = dict(report.rows())["warnings"]
        assert f"repeated after a warning in 0 % of {warned:,} episodes" in said
        assert f"in silence in 100 % of {silent:,} episode" in said
        assert ("warnings", said) in report.as_dict()["more"]


def test_a_warning_says_whether_a_person_or_its_record_has_retired_it():
    right = Step(tool="sql", arguments={"q": "SELECT name FROM t"}, observation="3 rows")
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        for number in range(60):  # who is warned repeats it and fails, and nobody else does
            recall = memory.recall(f"{TASK} {number}")
            warned = memory.warnings.check(recall.episode_id, **CALL) is not None
            memory.reward(recall.episode_id, float(not warned), solution=[MISTAKE if warned else right], source="env")
        (warning,) = memory.warnings.all()
        assert (warning.state, warning.by_hand) == ("retired", False)
        assert dict(warning.rows())["state"] == "retired, by its record"
        memory.acting(actor="ann").warnings.restore(warning.id)
        (warning,) = memory.warnings.all()
        assert (warning.state, warning.by_hand) == ("active", True)
        assert dict(warning.rows())["state"] == "active, as a person decided"
        memory.acting(actor="ann").warnings.retire(warning.id)
        (warning,) = memory.warnings.all()
        assert (warning.state, warning.by_hand) == ("retired", True)
        assert "by_hand=True" in repr(warning)
        for shown in (dict(warning.rows())["state"], warning._repr_html_()):
            assert "retired, as a person decided" in shown
        for _ in range(2):
            memory.review.undo(next(one for one in memory.review.audit() if one.can_undo).id)
        (warning,) = memory.warnings.all()
        assert (warning.state, warning.by_hand) == ("retired", False)


def test_warnings_and_advice_are_cards_whose_texts_are_escaped():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        step = Step(tool="sql", arguments={"q": f"nme {EVIL}"}, observation=f"no such column: nme {EVIL}", failed=True)
        fail(memory, f"{EVIL} {TASK}", step, actor="ann")
        (warning,) = memory.warnings.all()
        memory.acting(actor="ann").warnings.advise(warning.id, f"\u202e{EVIL}")
        advice = about_to(memory, tool="sql", arguments={"q": f"nme {EVIL}"})
        assert isinstance(advice, Advice)
        (warning,) = memory.warnings.all()
        for shown in (warning, advice, FailureWarning(id="w", namespace="n", query=EVIL, action=EVIL, happened=EVIL)):
            found = shown._repr_html_()
            tags = set(re.findall(r"<([a-z]+)", found))
            assert not {"script", "img"} & tags, tags
            assert "&lt;script&gt;" in found
            assert "\u202e" not in found
        assert "the agent may do it anyway" in advice._repr_html_()
        assert "ann" in warning._repr_html_()


def test_what_a_failed_run_did_later_is_not_said_to_have_worked():
    right = Step(tool="sql", arguments={"q": "SELECT name FROM t"}, observation="3 rows")
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory, TASK, MISTAKE, right)
        assert memory.warnings.all()[0].instead == ""
        assert "What worked instead" not in str(about_to(memory))
        memory.recall(TASK).reward(1.0, solution=[right])
        fail(memory, TASK, MISTAKE)
        assert memory.warnings.all()[0].instead == right.action
        assert f"What worked instead: {right.action}" in str(about_to(memory))
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        failed = fail(memory, TASK, MISTAKE)
        memory.review.correct(failed, [right])
        assert f"What worked instead: {right.action}" in str(about_to(memory))


def test_what_is_taken_back_is_not_counted_any_more():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        for actor in ("ann", "bob"):
            recall = memory.acting(actor=actor).recall(TASK)
            memory.warnings.check(recall.episode_id, **CALL)
            memory.acting(actor=actor).reward(recall.episode_id, 1.0, source="env")
        (warning,) = memory.warnings.all()
        memory.forget(by_actor="bob")
        tally = memory.warnings.get(warning.id).tally
        assert tally.warned + tally.silent == 1


def test_an_addition_of_an_agent_does_not_lower_the_trust_of_warnings():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(min_trust="env")) as memory:
        memory.add("list the names of all clients", [Step(tool="sql", arguments={"q": "SELECT x FROM zzz"})], source="agent")
        fail(memory)
        advice = about_to(memory)
        assert advice is not None
        assert "What worked instead" not in advice.text


def test_a_failed_run_that_makes_no_warning_is_counted_with_its_reason(ram: CascadeMemory):
    said = {
        "lock timeout while altering billing: table is in use": True,
        "504 Gateway Timeout: add a WHERE": True,
        "mode direct is refused": True,
        "nothing happened": False,
    }
    for observation, failed in said.items():
        step = Step(tool="deploy", arguments={"mode": "direct"}, observation=observation, failed=failed)
        ram.recall("release it").reward(0.0, solution=[step], source="env")
    assert len(ram.warnings.all()) == 1
    assert ram.health().unblamed == {"an error of the world, such as a time-out": 2, "no step is marked as failed": 1}
    assert "failed runs, 2: an error of the world, such as a time-out, 1: no step is marked as failed" in str(ram.health())


def _locked(
    memory: CascadeMemory, table: str = "billing", source: str = "env", said: str = "lock timeout, waited 30 s: in use"
) -> str:
    step = Step(tool="alter", arguments={"table": table, "how": "at once"}, observation=said, failed=True)
    return fail(memory, f"add a column to {table}", step, source=source)


def test_an_action_that_meets_the_same_error_of_the_world_three_times_is_blamed(ram: CascadeMemory):
    episode_id = _locked(ram)
    ram.reward(
        episode_id, 0.0, solution=ram.episodes.get(episode_id).solution, source="env", overwrite=True
    )  # the same episode
    _locked(ram, said="lock timeout, waited 31 s: in use")  # numbers do not count
    _locked(ram, table="orders")
    _locked(ram, said="HTTP 503: temporarily unavailable")
    assert ram.warnings.all() == []
    _locked(ram)
    (warning,) = ram.warnings.all()
    assert (warning.tool, warning.times) == ("alter", 1)
    advice = about_to(ram, tool="alter", arguments={"table": "billing", "how": "at once"})
    assert advice is not None
    assert "lock timeout" in str(advice)


def test_the_world_is_not_blamed_on_what_has_worked_says_nothing_or_was_forgotten(ram: CascadeMemory):
    worked = Step(tool="alter", arguments={"table": "billing", "how": "at once"}, observation="done")
    ram.add("add a column to billing", [worked])
    bare = Step(tool="ping", observation="connection refused", failed=True)
    for _ in range(4):
        _locked(ram)
        fail(ram, "is it there?", bare)
    assert ram.warnings.all() == []
    assert _locked(ram, table="orders")
    ram.forget(episode_id=_locked(ram, table="orders"))
    _locked(ram, table="orders")
    assert ram.warnings.all() == []


def _deployed(memory: CascadeMemory, service: str) -> None:
    arguments = {"service": service, "mode": "direct"}
    fail(memory, f"release {service}", Step(tool="deploy", arguments=arguments, observation=f"{service} is down", failed=True))


@pytest.mark.parametrize(("matters", "warned"), [({}, False), ({"deploy": ["mode"]}, True), ({"deploy": ["gone"]}, False)])
def test_a_person_says_in_which_arguments_a_mistake_lies(matters: dict[str, list[str]], warned: bool):
    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(matters=matters)) as memory:
        _deployed(memory, "billing")
        second = about_to(memory, "release search", tool="deploy", arguments={"service": "search", "mode": "direct"})
        assert (second is not None) == warned
        assert about_to(memory, "release search", tool="deploy", arguments={"service": "search", "mode": "staged"}) is None
        _deployed(memory, "search")
        assert len(memory.warnings.all()) == (1 if warned else 2)


@pytest.mark.parametrize("matters", [None, "mode", {"deploy": "mode"}, {"deploy": [1]}, {1: ["mode"]}])
def test_what_matters_must_name_arguments(matters: Any):
    with pytest.raises(InvalidInput, match="matters must say which arguments of a tool matter, such as"):
        WarningOptions(matters=matters)
