"""A case is shown if neither a person has hidden it nor its actor is in quarantine, in whatever order that was decided."""

from __future__ import annotations

import contextlib
import itertools
import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from decided import TASK, latest, shown
from inside import verb_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import CascadeError


def orders(*steps: str) -> list[tuple[str, ...]]:
    """Every order of steps in which each comes before what takes it back, which follows it in the list."""
    pairs = list(zip(steps[::2], steps[1::2], strict=True))
    every = itertools.permutations(steps)
    return [order for order in every if all(order.index(one) < order.index(other) for one, other in pairs)]


def of_eve(memory: CascadeMemory, solution: str = "oven") -> str:
    return str(memory.acting(actor="eve").reward(memory.acting(actor="eve").recall(TASK).episode_id, 1.0, solution=solution))


def recalled(memory: CascadeMemory) -> list[str]:
    """What a recall of somebody else may choose from."""
    return [str(memory.cases.get(one.id).solution) for one in memory.acting(actor="bob").recall(TASK).explain().candidates]


@pytest.mark.parametrize("order", orders("quarantine", "release", "hide", "unhide"))
def test_what_a_person_has_hidden_and_who_is_in_quarantine_are_told_apart(ram: CascadeMemory, order: Sequence[str]):
    case_id, reasons = of_eve(ram), set[str]()
    for step in order:
        if step in ("hide", "unhide"):
            assert verb_of(ram.acting(actor="ann"), step)(case_id)
        else:
            verb_of(ram.acting(actor="ann"), step)("eve")
        reasons ^= {"person"} if step in ("hide", "unhide") else {"quarantine"}
        assert ram.cases.get(case_id).hidden == bool(reasons)
        assert shown(ram) == recalled(ram) == ([] if reasons else ["oven"])
    assert all(check.ok for check in ram.data.examine())


@pytest.mark.parametrize("of_episode", [False, True])
@pytest.mark.parametrize("order", orders("quarantine", "release", "correct", "undo"))
def test_a_case_that_a_correction_hides_stays_so_until_the_correction_is_undone(
    ram: CascadeMemory, order: Sequence[str], of_episode: bool
):
    wrong = ram.acting(actor="eve").add(TASK, "oven", source="env")
    if of_episode:
        episode_id = ram.acting(actor="eve").recall(TASK).episode_id
        assert ram.acting(actor="eve").reward(episode_id, 1.0, solution="oven") == wrong
    reasons, corrected = set[str](), ""
    for step in order:
        if step == "correct":
            ram.acting(actor="ann").review.correct(episode_id if of_episode else wrong, "fridge")
            corrected = latest(ram)
        elif step == "undo":
            ram.acting(actor="ann").review.undo(corrected)
        else:
            verb_of(ram.acting(actor="ann"), step)("eve")
        reasons ^= {"correction"} if step in ("correct", "undo") else {"quarantine"}
        assert ram.cases.get(wrong).hidden == bool(reasons)
        assert sorted(shown(ram)) == ([] if reasons else ["oven"]) + ["fridge"] * ("correction" in reasons)
    assert all(check.ok for check in ram.data.examine())


@pytest.mark.parametrize("of_episode", [False, True])
@pytest.mark.parametrize("order", orders("quarantine", "release", "correct", "undo"))
def test_the_case_that_a_person_corrects_to_is_shown_whoever_made_it(
    ram: CascadeMemory, order: Sequence[str], of_episode: bool
):
    right, reasons, corrected = of_eve(ram, "fridge"), set[str](), ""
    wrong = ram.add(TASK, "oven")
    if of_episode:
        wrong = ram.recall(TASK).episode_id
        ram.episodes.finish(wrong, solution="oven")
    for step in order:
        if step == "correct":
            assert ram.acting(actor="ann").review.correct(wrong, "fridge") == right
            corrected = latest(ram)
        elif step == "undo":
            ram.acting(actor="ann").review.undo(corrected)
        else:
            verb_of(ram.acting(actor="ann"), step)("eve")
        reasons ^= {"correction"} if step in ("correct", "undo") else {"quarantine"}
        shows = "correction" in reasons or "quarantine" not in reasons
        assert ram.cases.get(right).hidden != shows
        assert ("fridge" in shown(ram)) == shows
        assert not shows or "fridge" in recalled(ram)
    assert all(check.ok for check in ram.data.examine())


def test_what_a_person_hid_stays_so_when_it_is_stored_anew_in_quarantine(ram: CascadeMemory):
    recall = ram.acting(actor="eve").recall(TASK)
    case_id = str(ram.acting(actor="eve").reward(recall.episode_id, 1.0, solution="oven"))
    ram.cases.hide(case_id)
    ram.sources.quarantine("eve")
    ram.acting(actor="eve").reward(recall.episode_id, 1.0, solution="oven", overwrite=True, metadata={"tries": 2})
    assert [(case.id, dict(case.metadata)) for case in ram.cases.all()] == [(case_id, {"tries": 2})]
    assert ram.sources.release("eve") == 0
    assert shown(ram) == []
    ram.cases.unhide(case_id)
    assert shown(ram) == ["oven"]


def test_what_an_older_version_marked_as_hidden_by_a_person_stays_out_when_unhidden(
    on_disk: Callable[..., CascadeMemory], tmp_path: Path
):
    memory = on_disk()
    case_id = of_eve(memory)
    memory.sources.quarantine("eve")
    memory.cases.hide(case_id)
    memory.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")) as ledger, ledger:
        ledger.execute("UPDATE cases SET hidden = 1")
    memory = on_disk()
    assert memory.cases.unhide(case_id)
    assert shown(memory) == []
    assert memory.sources.release("eve") == 1
    assert shown(memory) == ["oven"]


def test_unhide_says_that_nobody_had_hidden_what_is_in_quarantine(ram: CascadeMemory):
    case_id = of_eve(ram)
    ram.sources.quarantine("eve")
    assert not ram.cases.unhide(case_id)
    assert shown(ram) == []
    assert ram.cases.hide(case_id)
    assert ram.cases.unhide(case_id)
    assert shown(ram) == []


def test_a_case_that_becomes_the_word_of_who_is_in_quarantine_goes_there(ram: CascadeMemory):
    """Ann found it first and eve as well; then what came from ann is forgotten."""
    for actor in ("ann", "eve"):
        ram.acting(actor=actor).reward(ram.acting(actor=actor).recall(TASK).episode_id, 1.0, solution="oven")
    assert ram.sources.quarantine("eve") == 0
    assert shown(ram) == ["oven"]
    ram.forget(by_actor="ann")
    assert [case.actor for case in ram.cases.all()] == ["eve"]
    assert shown(ram) == []
    assert ram.sources.release("eve") == 1


def _some(memory: CascadeMemory, rng: random.Random) -> Callable[[], object]:
    case = rng.choice(list(memory.cases.all()))
    episode = rng.choice(list(memory.episodes.all()))
    actor = rng.choice(["eve", "bob"])
    return rng.choice(
        [
            lambda: memory.sources.quarantine(actor),
            lambda: memory.sources.release(actor),
            lambda: memory.cases.hide(case.id),
            lambda: memory.cases.unhide(case.id),
            lambda: memory.cases.pin(case.id),
            lambda: memory.cases.unpin(case.id),
            lambda: memory.review.correct(case.id, rng.choice(["oven", "fridge", "shelf"])),
            lambda: memory.review.correct(episode.id, rng.choice(["oven", "fridge", "pan"])),
            lambda: memory.review.undo(rng.choice([one.id for one in memory.review.audit()] or ["none"])),
            lambda: memory.reward(episode.id, 1.0, solution=rng.choice(["oven", "pan"]), overwrite=True),
            lambda: memory.acting(actor=actor).add(TASK, rng.choice(["oven", "fridge"]), source=rng.choice(["env", "human"])),
        ]
    )


@pytest.mark.parametrize("seed", range(8))
def test_after_whatever_people_do_nobody_is_shown_a_case_of_an_actor_in_quarantine(ram: CascadeMemory, seed: int):
    rng = random.Random(seed)
    for actor, solution in (("eve", "oven"), ("bob", "fridge"), ("eve", "shelf"), ("bob", "oven"), ("eve", "pan")):
        ram.acting(actor=actor).reward(ram.acting(actor=actor).recall(TASK).episode_id, 1.0, solution=solution)
    for _ in range(40):
        try:
            _some(ram, rng)()
        except CascadeError:
            continue
        bad = {one.actor for one in ram.sources.standings() if one.standing == "quarantined"}
        for case in ram.cases.all():
            vouched = case.source == "human" or case.pinned or case.trust == 4
            assert case.hidden or vouched or case.actor not in bad
            assert (case.solution in shown(ram)) != case.hidden
    for actor in ("eve", "bob"):
        ram.sources.release(actor)
    for case in list(ram.cases.all()):
        assert ram.cases.unhide(case.id) == case.hidden  # a person has hidden what is hidden now
    assert len(shown(ram)) == len(ram)
    assert all(check.ok for check in ram.data.examine())


def test_a_quarantine_that_comes_before_the_first_task_of_a_namespace_holds(ram: CascadeMemory):
    assert ram.acting(actor="ann").sources.quarantine("eve") == 0
    of_eve(ram)
    assert recalled(ram) == []
    assert [one.action for one in ram.review.audit()] == ["quarantine"]


def test_to_take_a_release_back_puts_nobody_into_quarantine_who_was_not_there(ram: CascadeMemory):
    ram.acting(actor="bob").reward(ram.acting(actor="bob").recall("cool a mug").episode_id, 1.0, solution="fridge")
    ram.acting(actor="ann").sources.release("bob")
    ram.review.undo(next(iter(ram.review.audit())).id)
    assert ram.cases.search("cool a mug").cases
    assert ram.sources.quarantine("bob") == 1
    ram.sources.release("bob")
    ram.review.undo(next(iter(ram.review.audit())).id)
    assert not ram.cases.search("cool a mug").cases


def test_a_case_that_an_honest_actor_found_too_is_shown_again_when_the_liar_is_undone(ram: CascadeMemory):
    for actor in ("eve", "ann"):
        ram.acting(actor=actor).reward(ram.acting(actor=actor).recall("cool a mug").episode_id, 1.0, solution="fridge")
    ram.sources.quarantine("eve")
    ram.forget(by_actor="eve")
    assert [case.actor for case in ram.cases.all()] == ["ann"]
    assert ram.cases.search("cool a mug").cases
