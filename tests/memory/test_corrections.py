"""People confirm, reject and correct what agents did, and take that back."""

from __future__ import annotations

import pytest
from decided import TASK, latest, shown

from cascade_memory import CascadeMemory
from cascade_memory.errors import AlreadyRewarded, ContentChanged, InvalidInput, UndoRefused, UnknownCase


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as opened:
        yield opened


def answered(memory: CascadeMemory, solution: str = "oven") -> str:
    """An episode whose run has ended, and which nobody has judged."""
    recall = memory.recall(TASK)
    memory.episodes.finish(recall.episode_id, solution=solution)
    return recall.episode_id


def test_a_wrong_answer_that_had_become_a_case_is_corrected(memory: CascadeMemory):
    recall = memory.recall(TASK)
    wrong = memory.reward(recall.episode_id, 1.0, solution="oven", metadata={"user": "bob"})
    right = memory.acting(actor="ann").review.correct(recall.episode_id, "fridge", note="ovens heat")
    assert shown(memory) == ["fridge"]
    found = memory.cases.get(right)
    assert (found.source, found.episode_id, dict(found.metadata)) == ("human", recall.episode_id, {"user": "bob"})
    with pytest.raises(UnknownCase):
        memory.cases.get(str(wrong))
    episode = memory.episodes.get(recall.episode_id)
    assert episode is not None
    assert (episode.reward, episode.source, episode.solution) == (0.0, "human", "fridge")
    entry = next(memory.review.audit())
    assert (entry.action, entry.actor, entry.subject, entry.note) == ("correct", "ann", recall.episode_id, "ovens heat")
    assert (entry.made, entry.can_undo, entry.undone) == (right, True, False)
    assert all(check.ok for check in memory.data.examine())


def test_an_undone_correction_brings_the_older_outcome_back(memory: CascadeMemory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 1.0, solution="oven", metadata={"user": "bob"})
    memory.acting(actor="ann").review.correct(recall.episode_id, "fridge")
    corrected = latest(memory)
    memory.acting(actor="bob").review.undo(corrected)
    assert shown(memory) == ["oven"]
    episode = memory.episodes.get(recall.episode_id)
    assert episode is not None
    assert (episode.reward, episode.source, episode.solution, dict(episode.metadata)) == (1.0, "host", "oven", {"user": "bob"})
    undo, entry = list(memory.review.audit())[:2]
    assert (undo.action, undo.actor, undo.undoes, undo.can_undo) == ("undo", "bob", corrected, False)
    assert (entry.undone, entry.can_undo) == (True, False)
    with pytest.raises(UndoRefused, match="taken back before"):
        memory.review.undo(corrected)
    assert memory.stats().mean_reward == 1.0
    assert all(check.ok for check in memory.data.examine())


def test_what_was_learned_from_the_wrong_outcome_is_taken_back(memory: CascadeMemory):
    used = memory.add(TASK, "oven")
    recall = memory.recall(TASK)
    assert recall.cases[0].id == used
    memory.reward(recall.episode_id, 1.0, solution="oven, then shelf")
    assert memory.cases.get(used).succeeded == 1.0
    memory.review.correct(recall.episode_id, "fridge")
    assert (memory.cases.get(used).shown, memory.cases.get(used).succeeded) == (1, 0.0)
    memory.review.undo(latest(memory))
    assert (memory.cases.get(used).shown, memory.cases.get(used).succeeded) == (1, 1.0)


def test_a_wrong_case_that_others_verify_is_hidden(memory: CascadeMemory):
    by_hand = memory.add(TASK, "oven")
    recall = memory.recall(TASK)
    assert memory.reward(recall.episode_id, 1.0, solution="oven") == by_hand
    right = memory.review.correct(by_hand, "fridge")
    assert shown(memory) == ["fridge"]
    assert (memory.cases.get(by_hand).hidden, memory.cases.get(right).hidden) == (True, False)
    memory.review.undo(latest(memory))
    assert shown(memory) == ["oven"]


def test_a_case_by_hand_is_replaced_and_linked(memory: CascadeMemory):
    old = memory.add(TASK, "oven", metadata={"room": "kitchen"})
    new = memory.acting(actor="ann").review.correct(old, "fridge")
    assert shown(memory) == ["fridge"]
    assert dict(memory.cases.get(new).metadata) == {"room": "kitchen"}
    entry = next(memory.review.audit())
    assert (entry.subject, entry.hid, entry.made) == (old, old, new)
    memory.review.undo(entry.id)
    assert shown(memory) == ["oven"]
    assert new not in memory


def test_a_case_that_others_verify_since_stays(memory: CascadeMemory):
    old = memory.add(TASK, "oven")
    memory.review.correct(old, "fridge")
    corrected = latest(memory)
    memory.reward(memory.recall(TASK).episode_id, 1.0, solution="fridge")
    with pytest.raises(UndoRefused, match="later"):
        memory.review.undo(corrected)
    assert shown(memory) == ["fridge"]


def test_a_correction_shows_a_hidden_case_again_and_undo_hides_it(memory: CascadeMemory):
    right = memory.add(TASK, "fridge")
    memory.cases.hide(right)
    episode_id = answered(memory)
    assert memory.review.correct(episode_id, "fridge") == right
    assert shown(memory) == ["fridge"]
    memory.review.undo(latest(memory))
    assert shown(memory) == []


def test_the_same_solution_is_no_correction(memory: CascadeMemory):
    case_id = memory.add(TASK, "oven")
    with pytest.raises(InvalidInput, match="confirm it"):
        memory.review.correct(case_id, "oven")
    with pytest.raises(InvalidInput, match="confirm it"):
        memory.review.correct(answered(memory), "oven")
    with pytest.raises(UnknownCase):
        memory.review.correct("nobody", "oven")


@pytest.mark.parametrize("verdict", ["confirm", "reject", "correct"])
def test_a_verdict_on_a_pending_episode_is_taken_back(memory: CascadeMemory, verdict: str):
    episode_id = answered(memory)
    (waiting,) = memory.review.to_judge()
    if verdict == "confirm":
        case_id = memory.acting(actor="ann").review.confirm(episode_id, seen=waiting.fingerprint)
        assert memory.cases.get(str(case_id)).solution == "oven"
    elif verdict == "reject":
        memory.acting(actor="ann").review.reject(episode_id, seen=waiting.fingerprint)
        assert shown(memory) == []
    else:
        memory.acting(actor="ann").review.correct(episode_id, "fridge")
        assert shown(memory) == ["fridge"]
    assert list(memory.review.to_judge()) == []
    memory.review.undo(latest(memory))
    assert shown(memory) == []
    assert list(memory.review.to_judge()) == [waiting]
    assert all(check.ok for check in memory.data.examine())


@pytest.mark.parametrize("verdict", ["confirm", "reject", "correct"])
def test_a_verdict_on_an_agents_report_is_taken_back(memory: CascadeMemory, verdict: str):
    episode_id = memory.review.propose(TASK, "oven")
    (waiting,) = memory.review.to_judge()
    if verdict == "correct":
        memory.review.correct(episode_id, "fridge")
    else:
        getattr(memory.review, verdict)(episode_id, seen=waiting.fingerprint)
    assert list(memory.review.to_judge()) == []
    assert shown(memory) == {"confirm": ["oven"], "reject": [], "correct": ["fridge"]}[verdict]
    memory.review.undo(latest(memory))
    assert shown(memory) == []
    assert list(memory.review.to_judge()) == memory.review.reported() == [waiting]
    memory.review.confirm(episode_id, seen=waiting.fingerprint)
    assert shown(memory) == ["oven"]


def test_of_two_people_one_decides(memory: CascadeMemory):
    for episode_id in (memory.review.propose(TASK, "oven"), answered(memory)):
        seen = memory.episodes.get(episode_id)
        assert seen is not None
        memory.acting(actor="ann").review.confirm(episode_id, seen=seen.fingerprint)
        with pytest.raises((AlreadyRewarded, ContentChanged)):
            memory.acting(actor="bob").review.confirm(episode_id, seen=seen.fingerprint)
        with pytest.raises((AlreadyRewarded, ContentChanged)):
            memory.acting(actor="bob").review.reject(episode_id, seen=seen.fingerprint)
        assert next(entry.actor for entry in memory.review.audit()) == "ann"


def test_only_the_latest_verdict_is_taken_back(memory: CascadeMemory):
    episode_id = answered(memory)
    memory.review.correct(episode_id, "fridge")
    first = latest(memory)
    memory.review.correct(episode_id, "shelf")
    second = latest(memory)
    with pytest.raises(UndoRefused, match="later"):
        memory.review.undo(first)
    memory.review.undo(second)
    assert shown(memory) == ["fridge"]
    memory.review.undo(first)
    assert shown(memory) == []
    assert [one.id for one in memory.review.to_judge()] == [episode_id]


def test_a_reward_by_a_host_since_is_not_taken_back(memory: CascadeMemory):
    episode_id = answered(memory)
    memory.review.correct(episode_id, "fridge")
    corrected = latest(memory)
    memory.reward(episode_id, 1.0, solution="shelf", overwrite=True)
    with pytest.raises(UndoRefused, match="later"):
        memory.review.undo(corrected)
    assert shown(memory) == ["shelf"]


def test_the_revision_rate_is_decided_by_the_id(memory: CascadeMemory):
    ids = {memory.review.propose(f"task {number}", "oven") for number in range(200)}
    some = {one.id for one in memory.review.to_judge(rate=0.3)}
    assert some < {one.id for one in memory.review.to_judge(rate=0.6)} < ids
    assert 30 < len(some) < 95  # of the ids, which are drawn by chance: 60 on average
    assert some == {one.id for one in memory.review.to_judge(rate=0.3)}
    assert list(memory.review.to_judge(rate=0.0)) == []
    with pytest.raises(InvalidInput, match="rate"):
        memory.review.to_judge(rate=1.5)
