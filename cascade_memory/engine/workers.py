"""Our own worker threads, apart from the host's: started on demand, reused, and never in the way when Python exits."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from cascade_memory.domain.daemon import Daemon

_REST = 30.0  # seconds without work after which a thread ends

T = TypeVar("T")


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
