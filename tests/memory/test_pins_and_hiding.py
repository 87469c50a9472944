"""A pinned case stays, a hidden one is never shown; a preview changes nothing, and the audit log has no text."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clocks import Clocks

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import InvalidInput, UndoRefused, UnknownCase

TASK = "cool some mug"


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as opened:
        yield opened


def test_no_door_shows_a_hidden_case(memory: CascadeMemory):
    hidden = memory.add(TASK, "oven", metadata={"room": "kitchen"})
    memory.add("heat some egg", "microwave", metadata={"room": "kitchen"})
    assert memory.acting(actor="ann").cases.hide(hidden)
    assert not memory.acting(actor="ann").cases.hide(hidden)
    for found in (
        memory.recall(TASK, k=5),
        memory.cases.search(TASK, k=5),
        memory.cases.search(TASK, k=5, where={"room": "kitchen"}),
    ):
        assert hidden not in {case.id for case in found.cases}
    candidates = memory.recall(TASK).explain().candidates
    assert [one.query for one in candidates] == ["heat some egg"]
    assert [case.hidden for case in memory.cases.all()] == [True, False]
    memory.add(TASK, "oven")  # the same again does not show it
    assert [case.solution for case in memory.cases.search(TASK, k=5).cases] == ["microwave"]
    assert memory.cases.unhide(hidden)
    assert memory.cases.search(TASK).cases[0].id == hidden
    assert all(check.ok for check in memory.data.examine())


def test_a_hidden_case_stays_hidden_when_it_is_opened_again_exported_and_imported(tmp_path: Path):
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        hidden, pinned = memory.add([(TASK, "oven"), ("heat some egg", "microwave")])
        memory.acting(actor="ann").cases.hide(hidden)
        memory.acting(actor="ann").cases.pin(pinned)
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        assert [case.id for case in memory.cases.search(TASK, k=5).cases] == [pinned]
        memory.data.export(file := io.StringIO(), progress=False)
        before = [entry.as_dict() for entry in memory.review.audit()]
        memory.cases.unhide(hidden)
        assert len(memory.cases.search(TASK, k=5).cases) == 2
    with CascadeMemory(embedder="hashing") as other:
        other.acting(actor="bob").data.import_(file.getvalue().splitlines(), progress=False)
        assert [case.id for case in other.cases.search(TASK, k=5).cases] == [pinned]
        assert other.cases.get(pinned).pinned
        imported, *entries = list(other.review.audit())
        assert (imported.action, imported.actor, imported.namespace) == ("import", "bob", None)
        assert [entry.as_dict() for entry in entries] == before
        other.review.undo(next(entry.id for entry in entries if entry.action == "hide"))
        assert len(other.cases.search(TASK, k=5).cases) == 2


def test_a_pinned_case_is_never_evicted():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=5)) as memory:
        ids = memory.add([(f"task {number}", "oven") for number in range(5)], progress=False)
        for case_id in ids[:3]:
            memory.cases.pin(case_id)
        memory.add([(f"other {number}", "fridge") for number in range(20)], progress=False)
        memory.recall(TASK)
        memory.sync()
        assert len(memory) <= 5
        assert {case.id for case in memory.cases.all()} >= set(ids[:3])


def test_where_all_room_is_pinned_a_new_case_has_none():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=2)) as memory:
        ids = [memory.add(f"task {number}", "oven") for number in range(2)]
        assert all(memory.cases.pin(case_id) for case_id in ids)
        memory.add("task 2", "oven")
        memory.recall(TASK)
        assert [case.id for case in memory.cases.all()] == ids


def test_a_pinned_case_does_not_expire(clocks: Clocks):
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(ttl=10.0)) as memory:
        pinned = memory.add(TASK, "oven")
        memory.cases.pin(pinned)
        memory.add("heat some egg", "microwave")
        clocks.pass_for(memory, 11.0)
        assert [case.id for case in memory.cases.search(TASK, k=5).cases] == [pinned]


def test_flags_are_taken_back_in_their_own_order(memory: CascadeMemory):
    case_id = memory.add(TASK, "oven")
    memory.cases.pin(case_id)
    memory.cases.hide(case_id)
    memory.cases.unhide(case_id)
    unhide, hide, pin, _ = list(memory.review.audit())
    with pytest.raises(UndoRefused, match="later"):
        memory.review.undo(hide.id)
    memory.review.undo(pin.id)
    memory.review.undo(unhide.id)
    memory.review.undo(hide.id)
    found = memory.cases.get(case_id)
    assert (found.pinned, found.hidden) == (False, False)
    memory.forget(case_id)
    with pytest.raises(UndoRefused):
        memory.review.undo(pin.id)
    with pytest.raises(UnknownCase):
        memory.cases.hide(case_id)
    with pytest.raises(InvalidInput, match="actor"):
        memory.acting(actor="").cases.hide(case_id)


def test_a_preview_is_the_receipt_and_changes_nothing(memory: CascadeMemory):
    memory.add(TASK, "oven", metadata={"user": "ann"})
    recall = memory.recall(TASK)
    case_id = memory.reward(recall.episode_id, 1.0, solution="fridge")
    head = [entry.id for entry in memory.review.audit()]
    for what in (
        {"case_ids": case_id},
        {"where": {"user": "ann"}},
        {"episode_id": recall.episode_id},
        {"everything": True},
    ):
        would = memory.forget(**what, dry_run=True)
        assert (len(memory), memory.stats().episodes) == (2, 1)
        assert would.cases >= 1
    assert [entry.id for entry in memory.review.audit()] == head
    assert memory.acting(actor="ann").forget(everything=True) == would
    entry = next(memory.review.audit())
    assert (entry.action, entry.actor, entry.counts["cases"], entry.can_undo) == ("forget", "ann", 2, False)


def test_a_preview_of_everything_counts_cases_that_expired_for_good(clocks: Clocks):
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(ttl=10.0)) as memory:
        memory.add(TASK, "oven")
        clocks.pass_for(memory, 11.0)
        memory.recall(TASK)
        clocks.real += 11.0  # it can no longer be brought back, and its rows are still there
        would = memory.forget(everything=True, dry_run=True)
        assert memory.forget(everything=True) == would
        assert would.cases == 1


def test_a_purge_leaves_no_text_in_the_audit_log(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        recall = memory.recall("where is zanzibar?")
        memory.reward(recall.episode_id, 1.0, solution="zanzibar is wrong", metadata={"user": "zanzibar"})
        memory.acting(actor="ann").review.correct(recall.episode_id, "zanzibar is right", note="zanzibar, of course")
        memory.acting(actor="ann").forget(where={"user": "zanzibar"}, purge=True)  # a database cleans its own files
        assert [entry.action for entry in memory.review.audit()] == ["purge", "forget", "correct"]
        for file in folder.rglob("*"):
            assert not file.is_file() or b"zanzibar" not in file.read_bytes(), file


_OTHER = """
import sys, time
from cascade_memory import CascadeMemory
memory = CascadeMemory(sys.argv[1], embedder="hashing")
memory = memory.acting(actor="other")
getattr(memory.review if sys.argv[2] == "correct" else memory.cases, sys.argv[2])(sys.argv[3], *sys.argv[4:])
print("acknowledged", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("verb", ["hide", "correct"])
def test_another_process_holds_to_it_at_once_and_kill_9_takes_nothing_back(tmp_path: Path, verb: str):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        case_id = memory.add(TASK, "oven")
        assert memory.cases.search(TASK).cases
        command = [sys.executable, "-c", _OTHER, str(tmp_path / "memory"), verb, case_id, *["fridge"] * (verb == "correct")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "acknowledged\n"
            assert case_id not in {case.id for case in memory.cases.search(TASK, k=5).cases}
            os.kill(other.pid, signal.SIGKILL)
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        found = memory.recall(TASK).cases if verb == "hide" else memory.cases.search(TASK, k=5).cases
        assert [case.solution for case in found] == ([] if verb == "hide" else ["fridge"])
        entry = next(memory.review.audit())
        assert (entry.action, entry.actor, entry.subject) == (verb, "other", case_id)
        memory.acting(actor="ann").review.undo(entry.id)
        assert [case.solution for case in memory.cases.search(TASK, k=5).cases] == ["oven"]
