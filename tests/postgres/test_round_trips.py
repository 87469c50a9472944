"""With a server that is milliseconds away, the number of round trips decides how long a recall takes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.ledger.postgres.batch import Batch


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the round trips of each thread: the learner's own do not make anybody wait."""
    counted: Counter[int] = Counter()
    send = Batch.send

    def counting(self: Batch) -> None:
        before = self.trips
        try:
            send(self)
        finally:
            counted[threading.get_ident()] += self.trips - before

    monkeypatch.setattr(Batch, "send", counting)
    return counted


def test_a_recall_takes_at_most_four_and_a_reward_three(new_database: Callable[[], str], trips: Counter[int]):
    me, found = threading.get_ident(), set[tuple[int, int]]()
    with CascadeMemory(new_database(), embedder="hashing", k=3, deadline=None) as memory:
        memory.add([(f"task {number} of kind {number % 7}", f"solution {number % 7}") for number in range(100)], progress=False)
        memory.recall("task 0 of kind 0")
        for number in range(30):
            time.sleep(0.1)  # as an agent would: the learner's thread reads what the last reward has stored
            before = trips[me]
            recall = memory.recall(f"task {number} of kind {number % 7}", metadata={"user": "ann", "tags": ["a", "b"]})
            between = trips[me]
            solution = f"solution {number % 5}" if number % 2 else f"another {number}"
            memory.reward(recall.episode_id, float(number % 4 > 0), solution=solution)
            found.add((between - before, trips[me] - between))
    assert max(recalls for recalls, _ in found) <= 4
    assert max(rewards for _, rewards in found) <= 3


def test_a_recall_at_once_after_a_reward_reads_the_log_and_the_new_case_as_well(
    new_database: Callable[[], str], trips: Counter[int]
):
    me = threading.get_ident()
    with CascadeMemory(new_database(), embedder="hashing", learn="off") as memory:
        memory.reward(memory.recall("heat a cup").episode_id, 1.0, solution="use the microwave")
        waiting = memory.recall("cool a cup")
        memory.reward(waiting.episode_id, 1.0, solution="use the fridge")
        before = trips[me]
        assert memory.recall("cool a cup").cases[0].solution == "use the fridge"
        assert trips[me] - before <= 5


def test_an_addition_takes_few_however_many_cases_there_are(new_database: Callable[[], str], trips: Counter[int]):
    with CascadeMemory(new_database(), embedder="hashing") as memory:
        memory.add("the first", "is stored with the namespace")
        before = trips[threading.get_ident()]
        memory.add([(f"task {number}", f"solution {number % 7}") for number in range(50)], progress=False)
        assert trips[threading.get_ident()] - before <= 6  # two, and what follows: the log, the new cases
