"""A person's correction on a platform becomes a corrected case, once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scored import opened, recalled, score

from cascade_memory import CascadeMemory

RIGHT = "put it into the freezer"


@pytest.fixture
def memory() -> CascadeMemory:
    return opened()


def corrected(number: int = 1, **fields: object):
    return replace(score(number, None, id="c", judge="human", by="ann", correction=RIGHT), **fields)


def solutions(memory: CascadeMemory) -> list[object]:
    return [case.solution for case in memory.cases.all() if not case.hidden]


def test_a_correction_becomes_a_case_of_whoever_gave_it(memory: CascadeMemory):
    episode = recalled(memory, 1)
    for _ in range(3):
        collected = memory.scores.collect([score(1), corrected()])
        assert solutions(memory) == [RIGHT]
    assert collected.corrected == 0
    (entry,) = memory.review.audit()
    assert (entry.action, entry.actor, entry.subject) == ("correct", "ann", episode)
    assert RIGHT not in repr(memory.scores.of(episode))
    (case,) = memory.cases.all()
    assert (case.actor, case.channel, case.copies) == ("ann", "scores", 1)


def test_a_later_correction_takes_its_place(memory: CascadeMemory):
    recalled(memory, 1)
    memory.scores.collect([corrected()])
    memory.scores.collect([corrected(correction="put it on ice", at=1.7e9 + 1)])
    memory.scores.collect([corrected()])
    assert solutions(memory) == ["put it on ice"]


def test_a_withdrawn_correction_is_taken_back(memory: CascadeMemory):
    recalled(memory, 1)
    memory.scores.collect([score(1), corrected()])
    memory.scores.collect([corrected(deleted=True)])
    assert solutions(memory) == ["put it into the fridge"]
    memory.scores.collect([corrected(at=1.7e9 + 2)])
    assert solutions(memory) == [RIGHT]


def test_a_correction_that_a_person_undid_stays_undone(memory: CascadeMemory):
    recalled(memory, 1)
    memory.scores.collect([corrected(), score(1)])
    memory.acting(actor="bob").review.undo(next(memory.review.audit()).id)
    collected = memory.scores.collect([score(1), corrected()])
    assert collected.corrected == 0
    assert solutions(memory) == ["put it into the fridge"]


def test_a_correction_by_a_model_is_no_correction(memory: CascadeMemory):
    recalled(memory, 1)
    memory.scores.collect([corrected(judge="judge", value=0.0)])
    assert solutions(memory) == []


@pytest.mark.parametrize("backwards", [False, True])
def test_a_correction_that_is_the_agents_own_answer_corrects_nothing(memory: CascadeMemory, backwards: bool):
    episode = recalled(memory, 1)
    for one in [corrected(correction=" put it into the fridge "), score(1)][:: -1 if backwards else 1]:
        memory.scores.collect([one])
    assert solutions(memory) == ["put it into the fridge"]
    found = memory.episodes.get(episode)
    assert found is not None
    assert found.reward == 1.0


def test_a_secret_in_a_correction_is_not_stored(memory: CascadeMemory):
    recalled(memory, 1)
    for _ in range(2):
        memory.scores.collect([corrected(correction="password: hunter2hunter2")])
    (case,) = memory.cases.all()
    assert "hunter2" not in str(case.solution)
    assert case.copies == 1


def test_a_persons_own_correction_here_stays(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([corrected()])
    memory.acting(actor="bob").review.correct(episode, "put it on ice")
    memory.scores.collect([corrected(at=1.7e9 + 9, correction="put it into snow")])
    assert solutions(memory) == ["put it on ice"]


def test_a_withdrawn_correction_does_not_stay_because_the_text_of_an_older_one_is_not_at_hand(memory: CascadeMemory):
    recalled(memory, 1)
    older = corrected(id="a", by="bob", correction="put it on ice")
    memory.scores.collect([older, corrected(at=1.7e9 + 1)])
    assert solutions(memory) == [RIGHT]
    memory.scores.collect([corrected(at=1.7e9 + 1, deleted=True)])
    assert RIGHT not in solutions(memory)
    memory.scores.collect([older])
    assert solutions(memory) == ["put it on ice"]
