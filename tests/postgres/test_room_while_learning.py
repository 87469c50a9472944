"""In a database other processes may wait for one to make room: it does so even while it learns something that takes long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from cascade_memory import CascadeMemory, Ranker, Retention
from cascade_memory.bandit.similarity import UniformPolicy
from cascade_memory.encoders import CosineEncoder
from cascade_memory.ports import Feedback


def test_room_is_made_while_a_long_training_goes_on(new_database: Callable[[], str]):
    may_learn, learning = threading.Event(), threading.Event()

    class Slow(UniformPolicy):
        def update(self, feedback: Sequence[Feedback]) -> None:
            learning.set()
            assert may_learn.wait(60)
            super().update(feedback)

    slow = Ranker(name="slow", encoder=lambda dimension, lookup: CosineEncoder(), policy=Slow)
    with CascadeMemory(new_database(), embedder="hashing", ranker=slow, retention=Retention(max_cases=5)) as memory:
        memory.reward(memory.recall("the first task").episode_id, 1.0, solution="the first solution")
        assert learning.wait(30)
        for i in range(12):
            memory.acting(namespace="other").add(f"task {i}", f"solution {i}")
        memory.acting(namespace="other").recall("the second task")
        by = time.monotonic() + 20
        while memory.acting(namespace="other").stats().cases > 5 and time.monotonic() < by:
            time.sleep(0.05)
        assert memory.acting(namespace="other").stats().cases == 5
        assert not may_learn.is_set()
        may_learn.set()
