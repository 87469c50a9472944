"""A poisoner is undone: whatever came from it goes, and what it displaced comes back."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import engine_of, state_of
from poisoned import HONEST, POISONER, play

from cascade_memory import CascadeMemory, Retention
from cascade_memory.domain.provenance import Wanted
from cascade_memory.errors import InvalidInput, UnknownCase
from cascade_memory.ledger import forgetting


def _live(memory: CascadeMemory, actor: str, n: int, start: int = 0) -> list[str | None]:
    """Solve tasks that have nothing in common with those of another actor."""
    return [
        memory.acting(actor=actor)
        .recall(f"{actor} has the question {i} about {actor}{i % 5}")
        .reward(1.0, solution=f"{actor} says {i}")
        for i in range(start, start + n)
    ]


@pytest.mark.slow
def test_a_flood_is_undone_and_what_it_displaced_is_back(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk(retention=Retention(max_cases=40))
    _live(memory, HONEST, 40)
    before = {case.id for case in memory.cases.all()}
    _live(memory, POISONER, 120)
    assert sum(case.actor == HONEST for case in memory.cases.all()) < 25
    would = memory.forget(by_actor=POISONER, dry_run=True)
    assert sum(case.actor == HONEST for case in memory.cases.all()) < 25
    receipt = memory.acting(actor="carl").forget(by_actor=POISONER)
    assert receipt == would
    assert (receipt.episodes, receipt.outcomes) == (120, 120)
    assert {case.id for case in memory.cases.all()} <= before
    assert len(memory) >= 38  # room is made for 5 % at once, so the flood may have driven out as many for good
    assert set(receipt.brought_back) <= before
    assert "cases brought back" in receipt.summary()
    (entry,) = memory.review.audit()
    assert (entry.actor, entry.action, entry.note) == ("carl", "forget", "what came from: actor 'mallory'")
    assert entry.counts["cases brought back"] == len(receipt.brought_back)
    assert [row.actor for row in memory.sources.all()] == [HONEST]
    found = memory.cases.search("mallory has the question 3 about mallory3", k=40).cases
    assert found
    assert not [case for case in found if "mallory" in case.query]
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    assert state_of(memory).index.count == len(memory)
    assert not memory.forget(by_actor=POISONER).episodes


def test_what_had_to_make_room_can_be_seen_and_brought_back(ram: CascadeMemory):
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=10)) as memory:
        _live(memory, HONEST, 25)
        evicted = memory.cases.expired(why="evicted")
        assert (len(evicted), {one.why for one in evicted}, memory.cases.expired()) == (10, {"evicted"}, [])
        assert 6.9 * 86_400 < evicted[0].seconds_left <= 7 * 86_400
        assert memory.cases.bring_back() == []
        assert memory.cases.bring_back(evicted[-1].id) == [evicted[-1].id]
        assert len(memory) == 10  # another one made room for it
        assert memory.forget(memory.cases.expired(why="evicted")[0].id).cases == 1
        with pytest.raises(UnknownCase, match="set aside"):
            memory.cases.bring_back(evicted[0].id)
        with pytest.raises(InvalidInput, match="expired, evicted"):
            memory.cases.expired(why="hidden")
        memory.forget(everything=True)
        assert memory.cases.expired(why="evicted") == []


def test_who_forgets_and_whose_things_are_forgotten_are_not_the_same(ram: CascadeMemory):
    case_id = ram.acting(actor=HONEST).add("a task", "s")
    with pytest.raises(InvalidInput, match=r"acting\(actor=\.\.\.\) says who forgets"):
        ram.forget(case_id, by_actor="carl")
    with pytest.raises(InvalidInput, match="channel must be"):
        ram.forget(by_channel="door")
    assert ram.forget(by_actor="nobody").cases == ram.acting(namespace="none").forget(since="1d").cases == 0
    assert ram.forget(since="1h", until="1d").cases == 0
    assert ram.acting(actor="carl").forget(by_channel="python", since="1h", purge=True).purged
    assert [(entry.action, entry.actor) for entry in ram.review.audit()][:2] == [("purge", "carl"), ("forget", "carl")]


def test_copies_of_its_cases_are_named_and_stay(ram: CascadeMemory):
    ram.acting(actor=POISONER).add("cool some mug", "put it into the oven")
    copy = ram.acting(actor=HONEST).recall("cool some mug, please").reward(1.0, solution="put it into the hot oven")
    receipt = ram.forget(by_actor=POISONER)
    assert (receipt.cases, receipt.made_after) == (1, (copy,))
    assert [case.id for case in ram.cases.all()] == [copy]
    assert ram.forget(receipt.made_after).cases == 1


@pytest.mark.parametrize("learn", ["inline", "background"])
def test_nobody_who_is_undone_is_among_the_actors_any_more(learn: str, on_disk: Callable[..., CascadeMemory]):
    memory = on_disk(learn=learn)
    _live(memory, POISONER, 5)
    _live(memory, HONEST, 5)
    memory.sync()
    assert {one.actor for one in memory.sources.standings()} == {HONEST, POISONER}
    memory.forget(by_actor=POISONER)
    memory.sync()
    assert {one.actor for one in memory.sources.standings()} == {HONEST}
    _live(memory, POISONER, 1)
    memory.sync()
    assert {one.actor: one.standing for one in memory.sources.standings()} == {HONEST: "new", POISONER: "new"}


def test_rewards_that_it_gave_to_others_are_taken_back(ram: CascadeMemory):
    """What they taught is gone, and others can judge again."""
    for i in range(20):
        ram.acting(actor=HONEST).recall(f"task {i} of kind {i % 4}").reward(1.0, solution=f"solution {i % 4}")
    shown = [ram.acting(actor=HONEST).recall(f"task {i} of kind {i % 4}") for i in range(20, 30)]
    known = [(case.shown, case.succeeded) for case in ram.cases.all()]
    rewards = state_of(ram).policy.rewards
    for recall in shown:
        ram.acting(actor=POISONER).reward(recall.episode_id, 0.0, source="user")
    assert ram.forget(by_actor=POISONER).outcomes == 10
    assert [(case.shown, case.succeeded) for case in ram.cases.all()] == known
    assert state_of(ram).policy.rewards == rewards
    assert ram.reward(shown[0].episode_id, 1.0, solution="solution 0")


_OTHER = textwrap.dedent(
    """
    import os, signal, sys
    from cascade_memory import CascadeMemory, Retention
    from cascade_memory.ledger import forgetting, undoing

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if sys.argv[2] == "before":
        forgetting.forget = die
    elif sys.argv[2] == "within":
        good = undoing.Undoing.make_good
        undoing.Undoing.make_good = lambda *all: die(good(*all))
    with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline", retention=Retention(max_cases=40)) as memory:
        print(len(memory.forget(by_actor="mallory").brought_back))
    """
)


def _undone_elsewhere(folder: Path, when: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", _OTHER, str(folder), when]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_after_a_kill_nothing_or_all_is_undone_and_others_follow(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk(retention=Retention(max_cases=40))
    _live(memory, HONEST, 40)
    before = {case.id for case in memory.cases.all()}
    _live(memory, POISONER, 60)
    stored = {case.id for case in memory.cases.all()}
    for when in ("before", "within"):
        assert _undone_elsewhere(tmp_path / "memory", when).returncode == -9
        assert {case.id for case in memory.cases.all()} == stored
        assert sum(row.episodes for row in memory.sources.all()) == 100
    ran = _undone_elsewhere(tmp_path / "memory", "never")
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) >= 15
    found = memory.cases.search("ann has the question 3 about ann3").cases[0]  # this process reads the log
    assert memory.cases.get(found.id).actor == HONEST
    assert {case.id for case in memory.cases.all()} <= before
    assert len(memory) >= 38
    memory.sync()
    assert state_of(memory).index.count == len(memory)
    assert state_of(memory).policy.rewards == 40
    assert all(check.ok for check in memory.data.examine())


def test_others_write_while_a_source_is_undone(on_disk: Callable[..., CascadeMemory], monkeypatch: pytest.MonkeyPatch):
    """What they say between the search and the deletion counts."""
    memory = on_disk()
    _live(memory, POISONER, 10)
    search, searched = forgetting.offering, list[int]()

    def meanwhile(*what: Any) -> Any:
        searched.append(1)
        if len(searched) == 1:
            again = memory.acting(actor=HONEST).recall("mallory has the question 3 about mallory3")
            again.reward(1.0, solution="mallory says 3")
        return search(*what)

    monkeypatch.setattr(forgetting, "offering", meanwhile)
    ledger = engine_of(memory).parts.ledger
    ledger.forgetting.forget_source(1, Wanted(actor=POISONER), window=100)
    assert [(case.actor, case.copies) for case in memory.cases.all()] == [(HONEST, 1)]


@pytest.mark.long
def test_after_a_real_stream_honest_cases_are_back(data: Path, tmp_path: Path):
    differences: list[float] = []
    for seed in range(6):  # one order of 150 tasks alone says little: 0.7 points a task
        clean = play(data, "banking77", seed, poison=0.0, undo=False, each=150, max_cases=50)
        folder = tmp_path / str(seed)
        undone = play(data, "banking77", seed, poison=0.1, undo=True, each=150, max_cases=50, folder=folder)
        assert undone.receipt is not None
        assert undone.receipt.brought_back
        assert undone.honest[0] < undone.honest[1] == 50
        differences.append(undone.after - clean.after)
    assert np.mean(differences) >= -0.03, differences


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_success_after_an_undo_is_that_of_a_memory_that_never_knew_the_poisoner(data: Path):
    """Within half a point on the mean of two streams; 10 % poison alone costs a point."""
    differences = []
    for seed in range(12):
        for stream, poison in (("banking77", 0.1), ("sentifin", 0.05)):
            clean = play(data, stream, seed, poison=0.0, undo=False)
            undone = play(data, stream, seed, poison=poison, undo=True)
            assert undone.honest[1] == 120
            differences.append(undone.after - clean.after)
    mean, error = np.mean(differences), np.std(differences, ddof=1) / len(differences) ** 0.5
    assert mean > -0.005, f"{100 * mean:+.2f} points (standard error {100 * error:.2f})"


def test_nothing_is_brought_back_where_there_is_no_room_any_more(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline", retention=Retention(max_cases=20)) as memory:
        _live(memory, POISONER, 2)
        _live(memory, HONEST, 40)
        there = {case.id for case in memory.cases.all() if case.actor == HONEST}
    with CascadeMemory(
        tmp_path / "memory", embedder="hashing", learn="inline", retention=Retention(max_cases=len(there) - 1)
    ) as memory:
        receipt = memory.forget(by_actor=POISONER)
        assert (receipt.episodes, receipt.brought_back) == (2, ())
        assert {case.id for case in memory.cases.all()} <= there
