"""What an import brings about actors takes effect at once, also in a memory that is open."""

from __future__ import annotations

import io
import json

from decided import TASK, shown
from inside import engine_of
from warned import fail

from cascade_memory import CascadeMemory


def exported(memory: CascadeMemory) -> list[str]:
    memory.data.export(file := io.StringIO(), progress=False)
    return file.getvalue().splitlines()


def of_eve(memory: CascadeMemory, task: str = TASK, solution: str = "oven") -> str:
    return str(memory.acting(actor="eve").reward(memory.acting(actor="eve").recall(task).episode_id, 1.0, solution=solution))


def standing(memory: CascadeMemory) -> str:
    return next(one.standing for one in memory.sources.standings() if one.actor == "eve")


def test_an_imported_quarantine_or_release_takes_effect_in_a_memory_that_is_open(ram: CascadeMemory):
    of_eve(ram)
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        other.data.import_(exported(ram), progress=False)
        assert shown(other) == ["oven"]
        of_eve(other, "heat some egg", "roof")
        ram.acting(actor="ann").sources.quarantine("eve")
        other.data.import_(exported(ram), progress=False)
        assert shown(other) == []
        assert standing(other) == "quarantined"
        assert other.stats().cases == 2
        ram.acting(actor="ann").sources.release("eve")
        other.data.import_(exported(ram), progress=False)
        assert sorted(shown(other)) == ["oven", "roof"]
        assert standing(other) == "released"
        ram.acting(actor="ann").sources.quarantine("eve")
        ram.acting(actor="ann").review.undo(next(entry.id for entry in ram.review.audit()))
        other.data.import_(exported(ram), progress=False)
        assert len(shown(other)) == 2
        assert all(check.ok for check in other.data.examine())


def test_an_imported_undo_of_the_only_decision_takes_effect_and_is_told_once(ram: CascadeMemory):
    of_eve(ram)
    ram.acting(actor="ann").sources.release("eve")
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        other.data.import_(exported(ram), progress=False)
        assert standing(other) == "released"
        for number in range(20):
            other.acting(actor="bob").sources.quarantine(f"guest {number}")
        ram.acting(actor="ann").review.undo(next(entry.id for entry in ram.review.audit()))
        before = engine_of(other).parts.ledger.head()
        other.data.import_(exported(ram), progress=False)
        assert standing(other) == "new"
        assert len(engine_of(other).parts.ledger.tail(before)) == 1


def test_an_imported_decision_is_known_before_the_actor_has_any_case_here(ram: CascadeMemory):
    of_eve(ram)
    ram.acting(actor="ann").sources.quarantine("eve")
    decisions = [line for line in exported(ram) if json.loads(line).get("kind") in (None, "action")]
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        other.recall(TASK)
        other.data.import_(decisions, progress=False)
        assert standing(other) == "quarantined"
        of_eve(other)
        assert shown(other) == []


def test_imported_cases_follow_what_was_decided_here(ram: CascadeMemory):
    of_eve(ram)
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        other.recall(TASK)
        other.acting(actor="bob").sources.quarantine("eve")
        other.data.import_(exported(ram), progress=False)
        assert shown(other) == []
        assert other.acting(actor="bob").sources.release("eve") == 1
        assert shown(other) == ["oven"]


def test_what_a_person_hid_in_quarantine_is_hidden_by_both_after_a_move(ram: CascadeMemory):
    ram.acting(actor="ann").cases.hide(case_id := of_eve(ram))
    ram.acting(actor="ann").sources.quarantine("eve")
    lines = exported(ram)
    (case,) = [one for line in lines if (one := json.loads(line)).get("kind") == "case"]
    assert case["hidden"] == 1  # as older versions know it
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        other.data.import_(lines, progress=False)
        other.cases.unhide(case_id)
        assert shown(other) == []
        other.sources.release("eve")
        assert shown(other) == ["oven"]


def test_what_a_forget_counts_can_be_imported(ram: CascadeMemory):
    failed = fail(ram)
    ram.acting(actor="mallory").cases.hide(of_eve(ram))
    ram.acting(actor="ann").forget(by_actor="mallory")
    ram.forget(episode_id=failed)
    counts = [entry.counts for entry in ram.review.audit()]
    assert {name for one in counts for name in one} >= {"decisions", "warnings"}
    with CascadeMemory(embedder="hashing") as other:
        assert other.data.import_(exported(ram), progress=False)
        assert [entry.counts for entry in other.review.audit()][1:] == counts
