"""Two people in two processes correct the same thing at the same moment: one does, the other one is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.errors import ContentChanged, InvalidInput

TASK = "cool some mug"
_PERSON = """
import json, sys, time
from cascade_memory import CascadeMemory
from cascade_memory.errors import CascadeError
folder, name = sys.argv[1:]
with CascadeMemory(folder, embedder="hashing") as memory:
    memory.cases.search("cool some mug")
    print("ready", flush=True)
    start, jobs = json.loads(sys.stdin.readline())
    for place, (one, seen) in enumerate(jobs):
        while time.time() < start + place * 0.08:
            pass
        try:
            memory.acting(actor=name).review.correct(one, f"what {name} says", seen=seen)
            said = "ok"
        except CascadeError as error:
            said = type(error).__name__
        print(said, flush=True)
"""


def jobs(memory: CascadeMemory, rounds: int) -> list[tuple[str, str]]:
    """Ids and fingerprints of episodes and cases of all kinds."""
    found: list[tuple[str, str]] = []
    for number in range(rounds):
        by_hand = memory.cases.get(memory.add(f"{TASK} {number}", "oven"))
        recall = memory.recall(f"heat some egg {number}")
        of_episode = memory.cases.get(str(memory.reward(recall.episode_id, 1.0, solution="oven")))
        rewarded = memory.recall(f"boil some water {number}").episode_id
        memory.reward(rewarded, 1.0, solution="oven")
        waiting = memory.review.propose(f"wash some pan {number}", "oven")
        found += [(one.id, one.fingerprint) for one in (by_hand, of_episode)]
        found += [(one, memory.episodes.get(one).fingerprint) for one in (rewarded, waiting)]  # type: ignore[union-attr]
    return found


@pytest.mark.slow
def test_of_two_processes_one_corrects_and_the_other_one_is_told(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing") as memory:
        todo = jobs(memory, rounds=6)
        people = [
            subprocess.Popen(
                [sys.executable, "-c", _PERSON, str(folder), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for name in ("ann", "bob")
        ]
        for one in people:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in people:
            assert one.stdin is not None
            one.stdin.write(json.dumps([time.time() + 0.2, todo]) + "\n")
            one.stdin.flush()
        said = [one.communicate(timeout=60)[0].split() for one in people]
        assert [len(one) for one in said] == [len(todo)] * 2
        for both in zip(*said, strict=True):
            assert sorted(both) == ["ContentChanged", "ok"]
        entries = [entry for entry in memory.review.audit() if entry.action == "correct"]
        assert len(entries) == len(todo)
        who = {entry.actor: 0 for entry in entries}
        assert set(who) <= {"ann", "bob"}
        solutions = [str(case.solution) for case in memory.cases.all() if not case.hidden]
        assert sorted(solutions) == sorted(f"what {entry.actor} says" for entry in entries)
        assert [check for check in memory.data.examine() if not check.ok] == []
        found = memory.cases.search(TASK, k=100).cases  # this process follows what the others have done
        assert sorted(str(case.solution) for case in found) == sorted(solutions)


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as opened:
        yield opened


def test_what_is_corrected_is_what_was_seen(memory: CascadeMemory):
    case = memory.cases.get(memory.add(TASK, "oven"))
    memory.cases.hide(case.id)
    with pytest.raises(ContentChanged, match="look at it again"):
        memory.review.correct(case.id, "fridge", seen=case.fingerprint)
    memory.review.correct(case.id, "fridge", seen=memory.cases.get(case.id).fingerprint)
    with pytest.raises(ContentChanged):
        memory.review.correct("a case that was forgotten", "fridge", seen=case.fingerprint)
    assert [str(one.solution) for one in memory.cases.search(TASK, k=5).cases] == ["fridge"]


def test_a_confirmation_since_is_noticed_though_the_words_are_the_same(memory: CascadeMemory):
    episode_id = memory.review.propose(TASK, "oven")
    (seen,) = memory.review.to_judge()
    memory.acting(actor="ann").review.confirm(episode_id, seen=seen.fingerprint)
    with pytest.raises(ContentChanged):
        memory.acting(actor="bob").review.correct(episode_id, "fridge", seen=seen.fingerprint)
    now = memory.episodes.get(episode_id)
    assert now is not None
    memory.acting(actor="bob").review.correct(episode_id, "fridge", seen=now.fingerprint)


def test_pinning_or_verifying_a_case_does_not_change_what_was_seen(memory: CascadeMemory):
    case = memory.cases.get(memory.add(TASK, "oven"))
    memory.cases.pin(case.id)
    memory.add(TASK, "oven")
    memory.review.correct(case.id, "fridge", seen=case.fingerprint)


def test_a_trajectory_as_its_text_is_no_correction(memory: CascadeMemory):
    walk = Trajectory([Step(action="open fridge", observation="it is open")], answer="done")
    case = memory.cases.get(memory.add(TASK, walk))
    with pytest.raises(InvalidInput, match="already"):
        memory.review.correct(case.id, solution_text(walk))


def test_an_answer_that_the_agent_took_for_a_failure_is_confirmed_as_right(memory: CascadeMemory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 0.0, solution="fridge", source="agent")
    (seen,) = memory.review.to_judge()
    case_id = memory.acting(actor="ann").review.confirm(seen.id, seen=seen.fingerprint, value=1.0)
    assert memory.recall(TASK).cases[0].id == case_id
    memory.review.undo(next(memory.review.audit()).id)
    assert list(memory.review.to_judge()) == [seen]


def test_a_run_that_goes_on_does_not_wait_for_a_verdict(memory: CascadeMemory):
    running, interrupted = memory.recall(TASK).episode_id, memory.recall(TASK).episode_id
    memory.episodes.finish(interrupted, solution="fridge", status="interrupted")
    for one in (running, interrupted):
        found = memory.episodes.get(one)
        assert found is not None
        assert not found.waits_for_a_verdict
    assert list(memory.review.to_judge()) == []
    memory.episodes.finish(running, solution="fridge")
    (waiting,) = memory.review.to_judge()
    assert waiting.waits_for_a_verdict
