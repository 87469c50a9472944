"""Keeps measurements that take long: each is made on another thread, and used again until it is too old."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future, TimeoutError
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_MOST = 64
_SHARE = 50  # times as long as it took, a measurement is shown again


@dataclass(slots=True)
class _Entry:
    made: Future[Any]  # the last measurement that ended, or the first
    at: float
    next: Future[Any] | None = None


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """A measurement, the moment (Unix time) when it was made, and the seconds that it took."""

    value: T
    at: float
    took: float


class Remembered:
    """Returns the last measurement at once, and measures again in the background if that one is too old.

    Whoever asks first waits for a short time. If the measurement takes longer, they get None, and have to ask again.
    """

    def __init__(self, executor: Executor, *, fresh: float = 15.0, patience: float = 0.1) -> None:
        self._executor, self._fresh, self._patience = executor, fresh, patience
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, measure: Callable[[], T]) -> Seen[T] | None:
        """Return the measurement under this key; None if its first run is not done yet. Raise what ``measure`` raised."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(self._executor.submit(_timed, measure), time.monotonic())
                while len(self._entries) > _MOST:
                    self._entries.popitem(last=False)
            elif entry.next is not None and entry.next.done():
                entry.made, entry.next = entry.next, None
            elif entry.next is None and entry.made.done() and time.monotonic() - entry.at > self._rest(entry):
                entry.at = time.monotonic()
                entry.next = self._executor.submit(_timed, measure)
            self._entries.move_to_end(key)
            made = entry.made
        try:
            return made.result(self._patience)
        except TimeoutError:
            return None
        except BaseException:
            with self._lock:
                self._entries.pop(key, None)  # so that the next one who asks tries again
            raise

    def _rest(self, entry: _Entry) -> float:
        """Return how many seconds a measurement is used again: longer if it was slow, since agents come first."""
        failed = entry.made.cancelled() or entry.made.exception() is not None
        return self._fresh if failed else max(self._fresh, _SHARE * entry.made.result().took)

    def forget(self) -> None:
        """Drop all measurements, because something was changed."""
        with self._lock:
            self._entries.clear()


def _timed(measure: Callable[[], T]) -> Seen[T]:
    began = time.perf_counter()
    value = measure()
    return Seen(value, time.time(), time.perf_counter() - began)
