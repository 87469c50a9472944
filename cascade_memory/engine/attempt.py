"""A recall that is waited for up to its deadline, on a thread of its own: the embedder that it asks may hang."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from cascade_memory.domain.patience import patience
from cascade_memory.domain.recall import Recall
from cascade_memory.engine.workers import Job, Workers

T = TypeVar("T")

_LOADING = 60.0  # seconds that loading a model or a namespace may take, once
_MOST_STUCK = 32  # recalls that nobody waits for any more: beyond, the next one fails at once
_SHARE = 0.5  # of the deadline: what waiting for a lock may take; the rest is for finding cases
_MARGIN = 0.9  # of what is left: to write it down
_workers = Workers("cascade-memory-recall")  # as many as there are threads that recall, and those that hang


class DeadlinePassed(TimeoutError):
    """A recall took longer than it may."""


class Attempt:
    """One recall: what it is about to do, and what it has found. Shared by the thread that does it and the one that waits."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        self.doing = "the memory"
        self.found: Recall | None = None
        self._ends = None if deadline is None else time.monotonic() + deadline
        self._may = deque((True,))  # whoever takes it decides: cases are shown, or nobody waits any more

    def show(self, found: Recall) -> float | None:
        """These cases will be shown, whatever becomes of writing that down; return for how long that may take.

        Raises if nobody waits any more.
        """
        self.found = found
        if not self.decide():
            raise DeadlinePassed("nobody waits for this recall any more")
        return None if self._ends is None else min(self._ends - time.monotonic(), _SHARE * (self.deadline or 0.0)) * _MARGIN

    def decide(self) -> bool:
        """Decide for both; return False where the other one was faster."""
        try:
            return self._may.pop()
        except IndexError:
            return False

    def give_up(self) -> Recall:
        """Return what was found, though it is still being written down; raises where nothing was found in time."""
        if self.decide():
            raise DeadlinePassed(f"{self.doing} did not answer within the deadline of {self.deadline:g} s")
        assert self.found is not None
        return unrecorded(self.found, DeadlinePassed("the disk did not answer within the deadline"))


def unrecorded(found: Recall, error: Exception) -> Recall:
    """Return a recall that shows its cases, and says that it was not written down."""
    why = f"{type(error).__name__}: {error}; its cases are shown, but it was not written down, and its reward will be ignored"
    return dataclasses.replace(found, error=why)


class Attempts:
    """Makes them, and knows which of them hang."""

    def __init__(self, *, direct: bool) -> None:
        self._direct = direct  # nothing of somebody else's is called: locks are all that has to be waited for
        self._stuck: list[Job[Any]] = []
        self._counting = threading.Lock()

    def make(self, deadline: float | None, work: Callable[[Attempt], Recall]) -> Recall:
        """Return what was found within the deadline, or raise; without a deadline, on the caller's own thread."""
        attempt = Attempt(deadline)
        if deadline is None:
            return work(attempt)
        if self._direct:
            with patience(_SHARE * deadline):
                return work(attempt)
        job = self._begun(lambda: work(attempt), _SHARE * deadline)
        try:
            if job.wait(deadline):
                return job.result()
        except KeyboardInterrupt:
            attempt.decide()
            raise
        self.note_stuck(job)
        return attempt.give_up()

    def load(self, deadline: float | None, work: Callable[[], object], what: str) -> None:
        """Do what is done once, for which nobody has a deadline in mind; but for ever it may not take either."""
        if deadline is None:
            work()
            return
        job = self._begun(work, _SHARE * deadline)
        if not job.wait(max(_LOADING, deadline)):
            self.note_stuck(job)
            raise DeadlinePassed(f"loading {what} takes more than {_LOADING:g} s; memory.warm() waits for it")
        job.result()

    def _begun(self, work: Callable[[], T], waits: float) -> Job[T]:
        if self._stuck and len(self.note_stuck()) >= _MOST_STUCK:
            raise DeadlinePassed(f"{_MOST_STUCK} earlier recalls hang; until one of them comes back nothing more is begun")

        def patiently() -> T:
            with patience(waits):
                return work()

        job = Job(patiently)
        _workers.give(job)
        return job

    def note_stuck(self, *more: Job[Any]) -> list[Job[Any]]:
        """Take note of jobs that nobody waits for any more; return those that still hang."""
        with self._counting:
            self._stuck = [job for job in (*self._stuck, *more) if not job.over]
            return self._stuck
