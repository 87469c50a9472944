"""An action that is taken back leaves a case as it was: its id, what people decided about it, whose it is, and its trust."""

from __future__ import annotations

from typing import Any

import pytest

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import StoreError

EVERYBODY = ("host", "human", "env", "judge", "user", "agent")


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(retain_from=EVERYBODY)) as made:
        yield made


def take_back_the_last(memory: CascadeMemory) -> None:
    memory.review.undo(next(iter(memory.review.audit())).id)
    assert all(check.ok for check in memory.data.examine())


@pytest.mark.parametrize("decide", ["hide", "pin"])
@pytest.mark.parametrize("decided", ["before", "meanwhile"])
def test_a_case_that_was_confirmed_keeps_its_id_and_what_people_decided(memory: CascadeMemory, decide: str, decided: str):
    """The confirmation stores the same case again, so there is nothing of its own that its undo could bring back."""
    recall = memory.recall("cool some mug")
    case = str(memory.reward(recall.episode_id, 1.0, solution="oven", source="agent"))
    if decided == "before":
        getattr(memory.cases, decide)(case)
    (waiting,) = memory.review.to_judge()
    entry = memory.review.confirm(waiting.id, seen=waiting.fingerprint)
    assert entry == case
    confirmed = next(iter(memory.review.audit())).id
    if decided == "meanwhile":
        getattr(memory.cases, decide)(case)
    memory.review.undo(confirmed)
    (left,) = memory.cases.all()
    assert (left.id, left.hidden, left.pinned) == (case, decide == "hide", decide == "pin")
    assert [shown.id for shown in memory.recall("cool some mug").cases] == ([] if decide == "hide" else [case])


def test_a_case_is_trusted_no_more_than_before_although_its_origin_is_forgotten(memory: CascadeMemory):
    origin = memory.add("cool some mug", "fridge", source="agent")
    recall = memory.recall("cool some cup")
    assert [case.id for case in recall.cases] == [origin]
    case = str(memory.reward(recall.episode_id, 1.0, solution="freezer", source="env"))
    memory.forget(origin)
    before = memory.cases.get(case)
    assert before is not None
    assert before.trust == 0
    memory.review.correct(recall.episode_id, "shelf")
    take_back_the_last(memory)
    after = memory.cases.get(case)
    assert after is not None
    assert (after.trust, after.created_at) == (0, pytest.approx(before.created_at, abs=0.01))


def test_a_case_that_two_verified_is_again_that_of_the_first(memory: CascadeMemory):
    ann, bob = memory.acting(actor="ann"), memory.acting(actor="bob")
    recall = ann.recall("cool some mug", metadata={"user": "ann"})
    case = str(ann.reward(recall.episode_id, 1.0, solution="oven"))
    bob.reward(bob.recall("cool some mug", metadata={"user": "bob"}).episode_id, 1.0, solution="oven")

    def known() -> Any:
        found = memory.cases.get(case)
        assert found is not None
        return (
            found.metadata,
            found.actor,
            found.copies,
            [one.id for one in memory.cases.all(where={"user": "ann"})],
        )

    before = known()
    assert before[:2] == ({"user": "ann"}, "ann")
    memory.acting(actor="carl").review.correct(recall.episode_id, "fridge")
    assert known()[:2] == ({"user": "bob"}, "bob")
    take_back_the_last(memory)
    assert known() == before


def test_what_an_edited_entry_says_about_trust_is_bounded(memory: CascadeMemory):
    from inside import engine_of

    recall = memory.recall("cool some mug")
    memory.reward(recall.episode_id, 1.0, solution="freezer", source="env")
    memory.review.correct(recall.episode_id, "shelf")
    with engine_of(memory).parts.ledger.connections.write(durable=True) as connection:
        counts = '{"outcomes": 1, "cases deleted": 1, "levels below the trust in the source": 99}'
        connection.execute("UPDATE action SET counts = ? WHERE kind = 'correct'", (counts,))
    try:
        memory.review.undo(next(iter(memory.review.audit())).id)
    except StoreError:
        return  # an entry that was edited may be refused
    assert {case.trust for case in memory.cases.all()} <= set(range(5))
