"""What one thread does in a memory that many use at once, and what it was told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from cascade_memory import CascadeMemory

NAMESPACES = ("alpha", "beta", "gamma")
_SHARED_PER_NAMESPACE = 2


class Op(NamedTuple):
    """One thing to do. ``pick`` chooses among what there is: texts, episodes, cases."""

    verb: str
    namespace: str
    pick: int
    value: float
    pause: float


class Done(NamedTuple):
    """What came of it."""

    verb: str
    namespace: str
    episode: str | None = None
    case: str | None = None
    value: float | None = None
    result: Any = None
    error: str | None = None
    strangers: tuple[str, ...] = ()  # texts of another namespace that were handed out


def query(namespace: str, pick: int) -> str:
    return f"{namespace} heat the {('cup', 'pan', 'egg', 'plate', 'mug')[pick % 5]} of {namespace}"


def solution(namespace: str, pick: int) -> str:
    return f"{namespace} does step {pick % 3}"


def shared_episodes() -> list[tuple[str, str]]:
    """Return (episode, namespace) of what is open before the threads start."""
    return [(f"shared-{name}-{i}", name) for name in NAMESPACES for i in range(_SHARED_PER_NAMESPACE)]


class Actor:
    """One thread's share of the work, and the log of what it was told."""

    def __init__(self, memory: CascadeMemory, name: str, seeds: dict[str, list[str]]) -> None:
        self.memory, self.name, self.seeds = memory, name, seeds
        self.log: list[Done] = []
        self._own: list[tuple[str, str]] = []
        self._cases: list[tuple[str, str]] = []

    def run(self, ops: list[Op], start: threading.Barrier) -> None:
        start.wait()
        for op in ops:
            time.sleep(op.pause)
            getattr(self, f"_{op.verb}")(op)

    def _try(self, done: Done, call: Callable[[], Any]) -> Any:
        try:
            result = call()
        except Exception as error:
            self.log.append(done._replace(error=type(error).__name__, result=str(error)))
            return None
        self.log.append(done._replace(result=result))
        return result

    def _shared(self, op: Op) -> tuple[str, str]:
        shared = shared_episodes()
        return shared[op.pick % len(shared)]

    # -- verbs -------------------------------------------------------------------------------------------------------

    def _recall(self, op: Op) -> None:
        episode = f"{self.name}-{len(self.log)}"
        self._look(Done("recall", op.namespace, episode), lambda: self._recalled(op, op.namespace, episode))
        self._own.append((episode, op.namespace))

    def _recall_again(self, op: Op) -> None:
        episode, namespace = self._shared(op)
        self._look(Done("recall again", namespace, episode), lambda: self._recalled(op, namespace, episode))

    def _recalled(self, op: Op, namespace: str, episode: str) -> Any:
        return self.memory.acting(namespace=namespace).recall(query(namespace, op.pick), k=2, episode_id=episode)

    def _search(self, op: Op) -> None:
        asked = query(op.namespace, op.pick)
        self._look(Done("search", op.namespace), lambda: self.memory.acting(namespace=op.namespace).cases.search(asked, k=5))

    def _look(self, done: Done, call: Callable[[], Any]) -> None:
        recall = self._try(done, call)
        if recall is not None:
            texts = [*(case.query for case in recall.cases), *(str(case.solution) for case in recall.cases)]
            texts += [candidate.query for candidate in recall.explain().candidates]
            strangers = tuple(text for text in texts if not text.startswith(done.namespace))
            self.log[-1] = self.log[-1]._replace(result=recall.error, strangers=strangers)

    def _reward_own(self, op: Op) -> None:
        if self._own:
            self._reward(op, *self._own[op.pick % len(self._own)], value=op.value)

    def _reward_shared(self, op: Op) -> None:
        self._reward(op, *self._shared(op), value=op.value)

    def _reward_twice(self, op: Op) -> None:
        for _ in range(2):
            self._reward(op, *self._shared(op), value=op.value)

    def _reward_both_ways(self, op: Op) -> None:
        for value in (op.value, 1.0 - op.value):
            self._reward(op, *self._shared(op), value=value)

    def _overwrite(self, op: Op) -> None:
        self._reward(op, *self._shared(op), value=op.value, overwrite=True)

    def _reward(self, op: Op, episode: str, namespace: str, *, value: float, overwrite: bool = False) -> None:
        done = Done("overwrite" if overwrite else "reward", namespace, episode, value=value)
        solved = solution(namespace, op.pick) if value == 1.0 else None
        case = self._try(
            done,
            lambda: self.memory.acting(namespace=namespace).reward(episode, value, solution=solved, overwrite=overwrite),
        )
        if case is not None:
            self.log[-1] = self.log[-1]._replace(case=case)
            self._cases.append((case, namespace))

    def _discard(self, op: Op) -> None:
        episode, namespace = self._shared(op)
        self._try(
            Done("discard", namespace, episode), lambda: self.memory.acting(namespace=namespace).episodes.discard(episode)
        )

    def _finish(self, op: Op) -> None:
        episode, namespace = self._shared(op)
        found = solution(namespace, op.pick)
        self._try(
            Done("finish", namespace, episode),
            lambda: self.memory.acting(namespace=namespace).episodes.finish(episode, solution=found),
        )

    def _add(self, op: Op) -> None:
        pair = query(op.namespace, op.pick), solution(op.namespace, op.pick // 5)
        case = self._try(Done("add", op.namespace), lambda: self.memory.acting(namespace=op.namespace).add(*pair))
        self.log[-1] = self.log[-1]._replace(case=case)

    def _forget_seed(self, op: Op) -> None:
        seeds = self.seeds[op.namespace]
        self._forget(seeds[op.pick % len(seeds)], op.namespace)

    def _forget_own(self, op: Op) -> None:
        if self._cases:
            self._forget(*self._cases.pop(op.pick % len(self._cases)))

    def _forget(self, case: str, namespace: str) -> None:
        self._try(Done("forget", namespace, case=case), lambda: self.memory.acting(namespace=namespace).forget(case).cases)


VERBS = (
    *("recall", "recall", "reward_own", "reward_own", "recall_again", "reward_shared", "reward_twice", "reward_both_ways"),
    *("overwrite", "add", "forget_seed", "forget_own", "discard", "search", "finish"),
)
