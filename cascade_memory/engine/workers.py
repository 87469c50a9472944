"""Our own worker threads, apart from the host's, and recalls that end by their deadline even if a part of them hangs.

The threads are started on demand, reused, and never in the way when Python exits.

A model is called on another thread, which can be abandoned. The rest of a recall stays on its caller's thread, since its data
are in the processor's cache there. That rest can only wait for locks, and these have a time limit of their own. But a ranker
from elsewhere may hang as well, and so may a database server. With one of these, or if a filter may keep the database busy,
the whole recall runs on the other thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from cascade_memory.domain.daemon import Daemon
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.waiting import Asker, asked_by, patience

_REST = 30.0  # seconds without work after which a thread ends
T = TypeVar("T")
_LOADING = 60.0  # seconds that loading a model or a namespace may take, once
_MOST_STUCK = 32  # abandoned recalls that still hang: with so many, the next recall fails at once
_SHARE = 0.5  # share of the deadline for waiting for a lock; the rest is for finding cases
_MARGIN = 0.9  # share of the remaining time for writing the recall down


class Job(Generic[T]):
    """A call that a worker makes, with the caller's context variables. ``on_end`` is called when the call has ended."""

    def __init__(self, call: Callable[[], T], on_end: Callable[[], object] | None = None) -> None:
        self._call: Callable[[], T] | None = call
        self._context: contextvars.Context | None = contextvars.copy_context()
        self._on_end = on_end
        self._value: T | None = None
        self._error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()
        self.over = False

    def run(self) -> None:
        """Make the call. Its exception is stored for the thread that waits."""
        call, context, self._call, self._context = self._call, self._context, None, None
        assert call is not None
        assert context is not None
        try:
            self._value = context.run(call)
        except BaseException as error:  # noqa: BLE001 - see above
            self._error = error

    def finish(self) -> None:
        """Hand the result to the thread that waits."""
        self.over = True
        self._done.release()
        if self._on_end is not None:
            self._on_end()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the call; return whether it has ended. Only one caller may wait, and only once."""
        return self._done.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def result(self) -> T:
        """Return what the call returned, or raise what it raised."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # the exception refers to this frame: break the reference cycle
        return cast("T", self._value)


class Workers:
    """Daemon threads that make calls: at most ``most`` at a time; further calls wait for their turn.

    >>> workers = Workers("example")
    >>> job = Job(lambda: 6 * 7)
    >>> workers.give(job)
    >>> job.wait(10), job.result()
    (True, 42)
    """

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name, self._most = name, most
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[queue.SimpleQueue[Job[object]]] = deque()  # the most recently used one is last
        self._waiting: deque[Job[object]] = deque()
        self._threads: list[Daemon] = []

    def give(self, job: Job[T]) -> None:
        """Let a thread make a call: an idle one, a new one, or the next one that becomes free."""
        work = cast("Job[object]", job)
        with self._lock:
            inboxes: list[queue.SimpleQueue[Job[object]]] = []
            try:
                if self._idle:
                    inboxes.extend(map(deque[queue.SimpleQueue[Job[object]]].pop, (self._idle,)))
            finally:
                if inboxes:
                    inboxes[0].put(work)  # also after an interrupt: nobody else knows of this thread now
            self._threads = [thread for thread in self._threads if not thread.is_lost]
            given = bool(inboxes) or not (self._most is None or len(self._threads) < self._most)
            if given and not inboxes:
                self._waiting.append(work)
            given = given or self._hire(work)
        if not given:
            work.run()
            work.finish()

    def _hire(self, job: Job[object]) -> bool:
        """Start a thread for a job; return False if none can be started, or if Python is shutting down."""
        inbox: queue.SimpleQueue[Job[object]] = queue.SimpleQueue()
        inbox.put(job)  # the thread itself must not refer to it: that would keep its result for as long as the thread lives
        thread = Daemon(functools.partial(self._work, inbox), self._name)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._threads.append(thread)  # a thread that an interrupt has kept out of here does its work all the same
        return True

    def _work(self, inbox: queue.SimpleQueue[Job[object]]) -> None:
        job: Job[object] | None = inbox.get()
        while True:
            while job is not None:
                job.run()
                following = self._next(inbox)  # before the waiting thread goes on, so that its next call finds this thread idle
                job.finish()
                job = following
            try:
                job = inbox.get(timeout=_REST)
            except queue.Empty:
                if self._ends(inbox):
                    return

    def _next(self, inbox: queue.SimpleQueue[Job[object]]) -> Job[object] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(inbox)
        return None

    def _ends(self, inbox: queue.SimpleQueue[Job[object]]) -> bool:
        with self._lock, contextlib.suppress(ValueError):
            self._idle.remove(inbox)  # raises if it is missing: the thread was given a job just now
            self._threads = [thread for thread in self._threads if not thread.is_current]
            return True
        return False


_all: weakref.WeakSet[Workers] = weakref.WeakSet()


def _start_over_in_child() -> None:
    for workers in list(_all):
        workers._reset()  # pyright: ignore[reportPrivateUsage] - its threads do not survive a fork, and its lock may be held


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over_in_child)
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
