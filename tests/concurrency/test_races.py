"""Two things at once, in the worst order: each test steps in at the one moment where it would hurt."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of, state_of
from waiting import wait_until

from cascade_memory import CascadeMemory
from cascade_memory.cycle.retain import new_case
from cascade_memory.domain.waiting import patience
from cascade_memory.engine.follower import Follower
from cascade_memory.errors import CascadeError, StoreBusy, StoreError


@contextlib.contextmanager
def _once_before(owner: Any, name: str, step_in: Callable[[], object]) -> Generator[None, None, None]:
    """Let something happen right before the next call of a method, which then does what it always does."""
    method = getattr(owner, name)
    left = [step_in]

    def stepped(*args: Any, **kwargs: Any) -> Any:
        if left:
            left.pop()()
        return method(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, stepped)
        yield
    assert not left, f"{name} was never called: this test steps in at the wrong place by now"


class _Beside:
    """A call on another thread: started, and come so far, before this thread goes on; it may have to wait for this one."""

    def __init__(self, call: Callable[[], object], until: Callable[[], bool]) -> None:
        self._thread, self._until = threading.Thread(target=call, daemon=True), until

    def __call__(self) -> None:
        self._thread.start()
        wait_until(self._until)

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


def test_a_reward_for_an_episode_that_is_forgotten_meanwhile_is_refused_in_our_words(ram: CascadeMemory):
    episode = ram.recall("heat the cup").episode_id
    with (
        _once_before(engine_of(ram).parts.ledger, "settle", lambda: ram.forget(episode_id=episode)),
        pytest.raises(CascadeError, match=episode),
    ):
        ram.reward(episode, 1.0, solution="microwave")
    assert ram.stats().cases == 0


def test_an_outcome_that_arrives_while_learning_starts_afresh_is_learned_once(ram: CascadeMemory):
    first, second = ram.recall("heat the cup").episode_id, ram.recall("cool the cup").episode_id
    ram.reward(first, 1.0, solution="microwave")
    ledger, state = engine_of(ram).parts.ledger, state_of(ram)
    arrives = _Beside(lambda: ram.reward(second, 1.0, solution="fridge"), lambda: len(ledger.insight.rewards(None)) == 2)
    with _once_before(ledger.lessons, "history", arrives):
        ram.reward(first, 0.0, overwrite=True)  # what was learned from it cannot be subtracted: all is learned afresh
    arrives.join()
    ram.sync()
    assert state.policy.rewards == ram.stats().rewards == 2


def test_a_case_that_arrives_while_the_words_are_counted_afresh_is_counted_once(ram: CascadeMemory):
    gone = ram.add([("heat the cup", "microwave"), ("cool the cup", "fridge")])[0]
    state: Any = state_of(ram)
    arrives = _Beside(lambda: ram.add("wash the cup", "sink"), lambda: state.index.count == 2)
    with _once_before(type(state.encoder), "emptied", arrives):
        ram.forget(gone)
    arrives.join()
    ram.sync()
    assert state.encoder.words.texts == ram.stats().cases == 2


def test_a_recall_while_all_outcomes_are_learned_afresh_does_not_see_an_untrained_ranker(ram: CascadeMemory):
    ram.add([(f"heat cup {i}", f"microwave {i % 3}") for i in range(8)])
    episodes = [ram.recall(f"heat a cup {i}").episode_id for i in range(6)]
    for i, episode in enumerate(episodes):
        ram.reward(episode, float(i % 2), solution=f"microwave {i % 3}")
    seen: list[int] = []
    policy = type(state_of(ram).policy)
    with _once_before(policy, "update", lambda: seen.append(ram.recall("heat cup 3").explain().rewards)):
        ram.reward(episodes[0], 1.0, overwrite=True)
    assert seen == [6]


def test_a_recall_while_the_words_are_counted_afresh_does_not_see_half_of_them(ram: CascadeMemory):
    cups = ram.add([(f"heat cup {i}", f"microwave {i % 3}") for i in range(8)])
    state: Any = state_of(ram)
    seen: list[int] = []  # what a recall sees at that moment is logged, and learned from
    with _once_before(engine_of(ram).parts.ledger, "scan", lambda: seen.append(state.encoder.words.texts)):
        ram.forget(cups[7])
    assert seen in ([8], [7])


def test_sync_waits_for_the_learner_that_is_under_way():
    with CascadeMemory(embedder="hashing", learn="background") as memory:
        episode = memory.recall("heat the cup").episode_id
        policy = state_of(memory).policy
        under_way = threading.Event()

        def slow() -> None:
            under_way.set()
            time.sleep(0.3)

        with _once_before(policy, "update", slow):
            memory.reward(episode, 1.0, solution="microwave")
            assert under_way.wait(20)
            memory.sync()
            assert policy.rewards == 1


def test_what_others_write_while_a_namespace_is_loaded_is_not_missed(ram: CascadeMemory):
    engine = engine_of(ram)
    ledger = engine.parts.ledger
    engine.namespace_state("other")
    number = ledger.namespace("default", create=True)
    assert number is not None

    def another_process_adds(query: str) -> None:
        vector = engine.embed([query])[0]
        ledger.cases.add([new_case(query, vector, "s", solution_key="s", namespace=number, source="host")])
        engine.follow()  # as any thread does that recalls

    with (
        _once_before(ledger.lessons, "history", lambda: another_process_adds("heat the cup")),  # its cases are loaded by then
        _once_before(Follower, "join", lambda: another_process_adds("cool the cup")),
    ):
        engine.namespace_state("default")
    ram.recall("wash the cup")
    assert engine.namespace_state("default").index.count == ram.stats().cases == 2


def test_a_namespace_that_another_first_recall_writes_meanwhile_needs_no_turn_among_the_writers(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        ledger = engine_of(memory).parts.ledger
        release = threading.Event()
        held = threading.Event()

        def hold() -> None:
            with ledger.connections.write(durable=False):
                held.set()
                release.wait(20)

        def others_write_on_and_on() -> None:
            ledger.namespace("new", create=True)
            threading.Thread(target=hold, daemon=True).start()
            assert held.wait(20)

        try:
            with patience(0.1), _once_before(ledger.connections, "write", others_write_on_and_on):
                assert ledger.namespace("new", create=True) == ledger.namespace("new", create=False)
            with patience(0.1), pytest.raises(StoreBusy):
                ledger.namespace("newer", create=True)
        finally:
            release.set()


def test_a_case_goes_with_the_last_episode_that_verified_it_whichever_case_was_forgotten(ram: CascadeMemory):
    first = ram.add("heat the cup", "stove")
    episode = ram.recall("heat the cup").episode_id
    assert ram.reward(episode, 1.0, solution="stove") == first
    second = ram.reward(episode, 1.0, solution="microwave", overwrite=True)
    ram.forget(first)
    left = {case.id for case in ram.cases.search("heat the cup", k=5).cases}
    assert left == ({second} if ram.episodes.get(episode) is not None else set())


def test_who_waits_for_the_ledger_in_ram_while_it_is_closed_is_told_that():
    memory, said = CascadeMemory(embedder="hashing"), list[BaseException]()
    ledger, began = engine_of(memory).parts.ledger, threading.Event()

    def waits() -> None:
        began.set()
        try:
            ledger.cases.count(None)
        except StoreError as error:
            said.append(error)

    waiting = threading.Thread(target=waits)
    with ledger.connections.read():
        waiting.start()
        began.wait()
        time.sleep(0.05)  # until it waits for the lock; if it came too late, it is told the same
        ledger.close()
    waiting.join()
    memory.close()
    assert [(type(error), str(error)) for error in said] == [(StoreError, "the ledger is closed")]
