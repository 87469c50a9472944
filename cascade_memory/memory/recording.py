"""Writing recalls down: at once where that is possible, else as soon as the ledger is free; and knowing which ones were not."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from cascade_memory.domain.patience import patience, seconds_left
from cascade_memory.domain.records import RecallRecord
from cascade_memory.errors import EncoderMismatch, EpisodeClosed, MemoryForked, StoreBusy, StoreReplaced, UnknownEpisode
from cascade_memory.memory.workers import Job, Workers
from cascade_memory.ports.ledger import Ledger

_MOST_LATE = 256  # recalls that wait to be written down: beyond, they are not
_AT_ONCE = 1.0  # seconds that it is tried before the memory may have been closed
_WAITS = 30.0  # seconds for a recall to be written down, on behalf of its reward


class _Late(NamedTuple):
    entry: RecallRecord
    written: Callable[[int], object]


class Recording:
    """Writes recalls down. What keeps one from that is no reason to withhold its cases.

    While somebody else is writing, recalls queue up, and a thread writes them down in their order: a recall that came in a
    burst of two hundred must not lose its reward.
    """

    def __init__(self, ledger: Ledger, report: Callable[[str, Exception], None]) -> None:
        self._ledger, self._report = ledger, report
        self._late: deque[_Late] = deque()
        self._one_less = threading.Condition()
        self._writer = Workers("cascade-memory-late", 1)
        self._closed = False
        self._unopened: deque[str] = deque(maxlen=1024)

    def write(self, entry: RecallRecord, most: float | None, written: Callable[[int], object]) -> Exception | None:
        """Write a recall down and hand its key to ``written``, after so many seconds at most; return why that will never be."""
        if self._late:
            return self._postpone(_Late(entry, written))
        with patience(most):
            try:
                key = self._ledger.record(entry)
            except (EpisodeClosed, UnknownEpisode, MemoryForked, StoreReplaced, EncoderMismatch):
                raise
            except StoreBusy:
                return self._postpone(_Late(entry, written))
            except Exception as error:  # noqa: BLE001 - whatever it is: the cases are known
                return self._failed(entry, error)
        written(key)
        return None

    def _failed(self, entry: RecallRecord, error: Exception) -> Exception:
        self._report("record", error)
        if entry.episode_id is not None:
            self.note_unopened(entry.episode_id)
        return error

    # -- later -------------------------------------------------------------------------------------------------------

    def _postpone(self, late: _Late) -> Exception | None:
        with self._one_less:
            waiting = len(self._late)
            if waiting < _MOST_LATE and not self._closed:
                self._late.append(late)
                if not waiting:
                    self._writer.give(Job(self._catch_up))
                return None
        return self._failed(
            late.entry, StoreBusy(f"{waiting} recalls wait to be written down; is another process stuck?")
        )

    def _catch_up(self) -> None:
        """Write down what waits, in its order. It stays in the queue until then, so that nothing overtakes it."""
        more = True
        while more:
            late = self._late[0]
            try:
                with patience(_AT_ONCE):
                    key = self._ledger.record(late.entry)
                late.written(key)
            except StoreBusy as error:
                if not self._closed:
                    continue
                self._failed(late.entry, error)
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(late.entry, error)
            with self._one_less:
                self._late.popleft()
                more = bool(self._late)
                self._one_less.notify_all()

    def wait_for(self, episode_id: str | None = None) -> None:
        """Wait until an episode, or every one, is written down: somebody asks for it."""
        if not self._late:
            return
        left = seconds_left()
        with self._one_less:
            if not self._one_less.wait_for(lambda: not self._waits(episode_id), _WAITS if left is None else left):
                raise StoreBusy(
                    "the recall of this episode waits to be written down while another process is writing; is that one stuck?"
                )

    def _waits(self, episode_id: str | None) -> bool:
        return any(episode_id in (None, late.entry.episode_id) for late in self._late)

    def close(self) -> None:
        """Write down what waits, or let go of it after a while."""
        try:
            self.wait_for()
        except StoreBusy as error:
            self._report("record", error)
        self._closed = True

    # -- what was not ------------------------------------------------------------------------------------------------

    def note_unopened(self, episode_id: str) -> None:
        """Remember that a recall failed before its episode was written down."""
        self._unopened.append(episode_id)

    def failed_to_open(self, episode_id: str) -> bool:
        """Say whether this episode is not known because its recall failed."""
        return episode_id in self._unopened and self._ledger.episode(episode_id) is None
