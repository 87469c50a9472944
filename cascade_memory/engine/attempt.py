"""Lets a recall end by its deadline even if a part of it hangs: a model is called on another thread, which can be abandoned.

The rest of a recall stays on its caller's thread, since its data are in the processor's cache there. That rest can only wait
for locks, and these have a time limit of their own. But a ranker from elsewhere may hang as well, and so may a database server.
With one of these, or if a filter may keep the database busy, the whole recall runs on the other thread.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from cascade_memory.domain.asker import Asker, asked_by
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.waiting import patience
from cascade_memory.engine.workers import Job, Workers

T = TypeVar("T")

_LOADING = 60.0  # seconds that loading a model or a namespace may take, once
_MOST_STUCK = 32  # abandoned recalls that still hang: with so many, the next recall fails at once
_SHARE = 0.5  # share of the deadline for waiting for a lock; the rest is for finding cases
_MARGIN = 0.9  # share of the remaining time for writing the recall down
_workers = Workers("cascade-memory-recall")  # one for each thread that recalls, and one for each call that hangs


class DeadlinePassed(TimeoutError):
    """A recall took longer than its deadline."""


class Attempt:
    """One recall: what it is doing now, and what it has found. Shared by the thread that works and the one that waits."""

    def __init__(self, deadline: float | None, asker: Asker) -> None:
        self.deadline = deadline
        self._asker = asker
        self.doing = "the memory"
        self.found: Recall | None = None
        self._ends = None if deadline is None else time.monotonic() + deadline
        self.apart = False  # it has a thread of its own, which nobody waits for beyond the deadline
        self._undecided = deque((True,))  # the thread that takes the one item decides: show the cases, or give up

    def show(self, found: Recall) -> float | None:
        """Decide that the cases of ``found`` will be shown, even if the recall cannot be stored.

        Return how many seconds storing it may take; None: there is no limit. Raise ``DeadlinePassed`` if the waiting thread has
        given up.
        """
        self.found = found
        if not self.decide():
            raise DeadlinePassed("the caller of this recall has given up waiting")
        return None if self._ends is None else min(self._ends - time.monotonic(), _SHARE * (self.deadline or 0.0)) * _MARGIN

    @property
    def left(self) -> float | None:
        """The seconds until the deadline; None if there is none."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def missed(self) -> DeadlinePassed:
        """Return the error that names the part that did not answer in time."""
        return DeadlinePassed(f"{self.doing} did not answer within the deadline of {self.deadline:g} s")

    def decide(self) -> bool:
        """Claim the decision to show the cases or to give up; return False if the other thread has claimed it already."""
        try:
            return self._undecided.pop()
        except IndexError:
            return False

    def give_up(self) -> Recall:
        """Return the recall, although it is not stored yet; raise ``DeadlinePassed`` if no cases were chosen in time."""
        if self.decide():
            raise self.missed()
        assert self.found is not None
        self.leave()
        return unrecorded(self.found, DeadlinePassed("the disk did not answer within the deadline"))

    def leave(self) -> None:
        """Stop waiting for the recall to be stored: even if it is, the caller is told that it is not."""
        self.decide()
        self._asker.leave(undo=True)


def unrecorded(found: Recall, error: Exception) -> Recall:
    """Return a copy of a recall, with the same cases and an error that says that the recall was not stored."""
    what = "its cases are shown, but it" if found.cases else "it"
    why = f"{type(error).__name__}: {error}; {what} was not written down, and its reward will be ignored"
    return dataclasses.replace(found, error=why)


class Attempts:
    """Runs recalls with a deadline, and keeps track of those that hang."""

    def __init__(self, *, embeds_at_once: bool, rest_at_once: bool) -> None:
        # The embedder, or all else that a recall calls, is our own code and no model: it cannot hang.
        self._embeds_at_once, self._rest_at_once = embeds_at_once, rest_at_once
        self._stuck: list[Job[Any]] = []
        self._counting = threading.Lock()

    def make(self, deadline: float | None, work: Callable[[Attempt], Recall], *, light: bool) -> Recall:
        """Do ``work``, and return the recall that it makes; raise ``DeadlinePassed`` if that takes too long.

        Without a deadline, the caller's own thread does the work. ``light`` says that the work takes the database only a
        moment, however much is stored.
        """
        with asked_by(Asker()) as asker:
            attempt = Attempt(deadline, asker)
            try:
                return self._made(deadline, work, attempt, light=light)
            except Exception:
                attempt.decide()  # of the job, or an interrupt: nothing is shown or written down, if there is still time
                raise
            except BaseException:  # the caller is interrupted, and does not learn what was found
                attempt.leave()
                raise

    def _made(self, deadline: float | None, work: Callable[[Attempt], Recall], attempt: Attempt, *, light: bool) -> Recall:
        if deadline is None:
            return work(attempt)
        if self._rest_at_once and light:
            with patience(_SHARE * deadline):
                return work(attempt)
        attempt.apart = True
        job = self._begun(lambda: work(attempt), _SHARE * deadline)
        if job.wait(deadline):
            return job.result()
        self.note_stuck(job)
        return attempt.give_up()

    def embed(self, attempt: Attempt, work: Callable[[], T]) -> T:
        """Call the embedder: on another thread if it may hang, unless the whole attempt already runs on another thread."""
        left = attempt.left
        if left is None or self._embeds_at_once or attempt.apart:
            return work()
        job = self._begun(work, left)
        if job.wait(left):
            return job.result()
        self.note_stuck(job)
        raise attempt.missed()

    def load(self, deadline: float | None, work: Callable[[], object], what: str) -> None:
        """Do work that is done only once, such as loading a model; raise ``DeadlinePassed`` if it takes too long.

        It may exceed the deadline: it may take ``_LOADING`` seconds, or until the deadline if that is later.
        """
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
            raise DeadlinePassed(f"{_MOST_STUCK} earlier recalls hang; no new recall begins until one of them returns")

        def patiently() -> T:
            with patience(waits):
                return work()

        job = Job(patiently)
        _workers.give(job)
        return job

    def note_stuck(self, *more: Job[Any]) -> list[Job[Any]]:
        """Record jobs that nobody waits for any more; return those of all recorded jobs that still hang."""
        with self._counting:
            self._stuck = [job for job in (*self._stuck, *more) if not job.over]
            return self._stuck
