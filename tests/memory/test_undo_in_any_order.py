"""Undo after anything: what people decided comes back as it was, and what came in between is never half there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from decided import TASK, latest, shown
from inside import engine_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.engine import mirror_projection
from cascade_memory.errors import CascadeError, UndoRefused


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as opened:
        yield opened


def healthy(memory: CascadeMemory) -> bool:
    return all(check.ok for check in memory.data.examine())


def solved(memory: CascadeMemory, solution: str = "oven", source: str = "host") -> tuple[str, str]:
    """An episode, and the case that its reward stored."""
    episode_id = memory.recall(TASK).episode_id
    return episode_id, str(memory.reward(episode_id, 1.0, solution=solution, source=source))


# -- what was decided about a case that goes with its outcome ----------------------------------------------------------


def test_a_hidden_case_that_a_correction_deleted_comes_back_hidden(memory: CascadeMemory):
    episode_id, case_id = solved(memory)
    memory.acting(actor="ann").cases.hide(case_id)
    memory.acting(actor="ann").cases.pin(case_id)
    memory.acting(actor="bob").review.correct(episode_id, "fridge")
    corrected = next(memory.review.audit())
    assert "1 case deleted, 1 pinned one, 1 hidden one" in corrected.changed
    memory.review.undo(corrected.id)
    assert shown(memory) == []
    (found,) = memory.cases.all()
    assert (found.id, found.solution, found.pinned, found.hidden) == (case_id, "oven", True, True)


def test_a_host_that_repeats_its_reward_does_not_show_a_hidden_case_again(memory: CascadeMemory):
    episode_id, case_id = solved(memory)
    memory.acting(actor="ann").cases.hide(case_id)
    memory.reward(episode_id, 1.0, solution="oven", overwrite=True, metadata={"tries": 2})
    assert shown(memory) == []
    assert [(case.id, case.hidden) for case in memory.cases.all()] == [(case_id, True)]


def test_a_report_that_was_stored_at_once_and_hidden_stays_hidden_when_it_is_confirmed():
    with CascadeMemory(
        embedder="hashing", learn="inline", retention=Retention(retain_from=("agent", "host", "human"))
    ) as memory:
        episode_id, case_id = solved(memory, source="agent")
        memory.acting(actor="ann").cases.hide(case_id)
        (waiting,) = memory.review.to_judge()
        memory.acting(actor="bob").review.confirm(episode_id, seen=waiting.fingerprint)
        assert shown(memory) == []


def test_a_case_that_is_stored_anew_while_chroma_is_fed_stays_in_chroma(on_disk, monkeypatch):
    """The log says later that its id was removed; it has been fed again by then."""
    memory = on_disk()
    episode_id, case_id = solved(memory)
    memory.sync()
    take_in, between = mirror_projection.take_in, [lambda: memory.reward(episode_id, 1.0, solution="oven", overwrite=True)]

    def late(*args: Any) -> bool:
        more = take_in(*args)
        if between:
            between.pop()()
        return more

    monkeypatch.setattr(mirror_projection, "take_in", late)
    memory.add("heat some egg", "microwave")
    memory.sync()
    memory.add("boil some water", "kettle")
    memory.sync()
    assert not between
    assert case_id in memory
    assert healthy(memory)


# -- corrections of corrections ----------------------------------------------------------------------------------------


def test_a_correction_of_a_correction_is_taken_back_first(memory: CascadeMemory):
    first = memory.add(TASK, "oven")
    second = memory.acting(actor="ann").review.correct(first, "fridge")
    corrected = latest(memory)
    memory.acting(actor="bob").review.correct(second, "shelf")
    again = latest(memory)
    with pytest.raises(UndoRefused, match="later"):
        memory.review.undo(corrected)
    assert shown(memory) == ["shelf"]
    memory.review.undo(again)
    assert shown(memory) == ["fridge"]
    memory.review.undo(corrected)
    assert shown(memory) == ["oven"]
    assert healthy(memory)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_correction_to_what_another_case_says_already_is_taken_back(memory: CascadeMemory, hidden: bool):
    wrong, right = memory.add(TASK, "oven"), memory.add(TASK, "fridge", metadata={"user": "bob"})
    if hidden:
        memory.cases.hide(right)
    assert memory.acting(actor="ann").review.correct(wrong, "fridge") == right
    assert shown(memory) == ["fridge"]
    assert memory.cases.get(right).copies == 2
    memory.review.undo(latest(memory))
    assert sorted(shown(memory)) == (["oven"] if hidden else ["fridge", "oven"])
    found = memory.cases.get(right)
    assert (found.copies, found.hidden, dict(found.metadata)) == (1, hidden, {"user": "bob"})
    assert healthy(memory)


def test_what_verifies_the_right_case_since_stays_when_a_correction_is_taken_back(memory: CascadeMemory):
    wrong, right = memory.add(TASK, "oven"), memory.add(TASK, "fridge")
    memory.review.correct(wrong, "fridge")
    corrected = latest(memory)
    solved(memory, "fridge")
    memory.add(TASK, "fridge", source="env")
    memory.review.undo(corrected)
    assert memory.cases.get(right).copies == 3
    assert not memory.cases.get(wrong).hidden


# -- any sequence ------------------------------------------------------------------------------------------------------


def state(memory: CascadeMemory) -> Any:
    """Everything that people see, but not how often a case was shown: one that comes back begins to count anew."""
    cases = sorted(
        (case.id, case.query, str(case.solution), case.pinned, case.hidden, case.copies, case.source, case.actor, case.trust)
        for case in memory.cases.all()
    )
    episodes = [
        (one.id, one.status, one.reward, one.source, str(one.solution), one.ended, one.actor) for one in memory.episodes.all()
    ]
    return cases, episodes, [one.id for one in memory.review.to_judge()], sorted(shown(memory))


def filled(memory: CascadeMemory) -> None:
    memory.add([(TASK, "oven"), ("heat some egg", "microwave")], progress=False)
    memory.acting(actor="carol").add([(TASK, "pan"), (TASK, "shelf")], source="env")
    solved(memory, "kettle")
    solved(memory, "oven")  # verifies the case that was added
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution="roof", source="env")
    memory.review.propose(TASK, "cellar")
    memory.episodes.finish(memory.recall(TASK).episode_id, solution="garden")
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution="window", source="agent")


def some_action(memory: CascadeMemory, rng: random.Random) -> bool:
    """Do something that can be taken back; return whether it was possible, and changed anything."""
    before = latest(memory)
    case = rng.choice(list(memory.cases.all()))
    episode = rng.choice(list(memory.episodes.all()))
    actions: list[Callable[[], object]] = [
        lambda: memory.cases.hide(case.id),
        lambda: memory.cases.unhide(case.id),
        lambda: memory.cases.pin(case.id),
        lambda: memory.cases.unpin(case.id),
        lambda: memory.review.correct(case.id, rng.choice(["oven", "fridge", "shelf"]), seen=case.fingerprint),
        lambda: memory.review.correct(
            episode.id, rng.choice(["pan", "fridge", "box"]), seen=episode.fingerprint, note="so it is"
        ),
        lambda: memory.review.confirm(episode.id, seen=episode.fingerprint),
        lambda: memory.review.reject(episode.id, seen=episode.fingerprint),
    ]
    try:
        rng.choice(actions)()
    except CascadeError:
        return False
    return latest(memory) != before


@pytest.mark.parametrize("seed", range(12))
def test_whatever_was_done_undone_backwards_leaves_all_as_it_was(memory: CascadeMemory, seed: int):
    rng = random.Random(seed)
    filled(memory)
    states = [state(memory)]
    entries: list[str] = []
    for _ in range(20):
        if some_action(memory, rng):
            entries.append(latest(memory))
            states.append(state(memory))
    assert len(entries) > 3
    for entry in reversed(entries):
        assert state(memory) == states.pop()
        memory.acting(actor="bob").review.undo(entry)
    assert state(memory) == states.pop()
    assert healthy(memory)


def disturb(memory: CascadeMemory, rng: random.Random) -> None:
    """Forget, purge, expire or bring back, as it happens between two people's clicks."""
    ledger = engine_of(memory).parts.ledger
    kind = rng.choice(["forget", "purge", "expire", "evict", "bring back", "host"])
    some = rng.choice([one.id for one in memory.cases.all()] or [""])
    if kind == "forget" and some:
        memory.forget(some)
    elif kind == "purge":
        memory.forget(purge=True)
    elif kind == "expire":
        ledger.expiry.expire(1, 1e-9)
    elif kind == "evict" and some:
        ledger.cases.evict([memory.cases.get(some).key])
    elif kind == "bring back":
        memory.cases.bring_back()
    elif kind == "host":
        episode = rng.choice([one.id for one in memory.episodes.all()] or [""])
        memory.reward(episode, 1.0, solution="attic", overwrite=True) if episode else None


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_between_an_undo_is_done_or_refused(memory: CascadeMemory, seed: int):
    rng = random.Random(100 + seed)
    filled(memory)
    for _ in range(25):
        turn = rng.random()
        if turn < 0.45 and len(memory):
            some_action(memory, rng)
        elif turn < 0.6:
            disturb(memory, rng)
        else:
            entry = rng.choice(list(memory.review.audit()))
            before = state(memory)
            if entry.can_undo:
                memory.review.undo(entry.id)
            else:
                with pytest.raises(UndoRefused):
                    memory.review.undo(entry.id)
                assert state(memory) == before
        hidden = {case.id for case in memory.cases.all() if case.hidden}
        assert not hidden & {case.id for case in memory.cases.search(TASK, k=30).cases}
    assert healthy(memory)
