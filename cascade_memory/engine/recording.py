"""Writing recalls down: at once where that is possible, else as soon as the ledger is free; and knowing which ones were not."""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from cascade_memory.domain.patience import patience, seconds_left
from cascade_memory.domain.records import RecallRecord
from cascade_memory.engine.workers import Job, Workers
from cascade_memory.errors import EncoderMismatch, EpisodeClosed, MemoryForked, StoreBusy, StoreReplaced, UnknownEpisode
from cascade_memory.ports.ledger import Ledger

_MISUSE = (EpisodeClosed, UnknownEpisode, MemoryForked, StoreReplaced, EncoderMismatch)
MOST_LATE = 256  # recalls that wait to be written down: beyond, they are not
CROWDED = 32  # of them: beyond, a recall waits for its deadline before it joins them
_AT_ONCE = 1.0  # seconds that it is tried before the memory may have been closed
WAITS = 30.0  # seconds for a recall to be written down, on behalf of its reward
_Written: TypeAlias = "Callable[[int], object] | None"  # is handed the key of what is written down


class _Late(NamedTuple):
    entry: RecallRecord
    seq: int  # the log when it was made: what was forgotten since must not come back
    written: _Written


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
        self._writing = False  # somebody writes down what waits
        self._closed = False
        self._unopened: deque[str] = deque(maxlen=1024)
        self._untold: deque[tuple[str, str]] = deque(maxlen=1024)  # of those: of which nobody was told, and why

    def write(self, entry: RecallRecord, most: float | None, seq: int, written: _Written) -> Exception | None:
        """Write a recall down and hand its key to ``written``, after so many seconds at most; return why that will never be.

        ``seq`` is the last line of the log that it knows of.
        """
        until = None if most is None else time.monotonic() + most
        late = _Late(entry, seq, written)
        if self._late and not self._room(most):
            return self._postpone(late)
        with patience(None if until is None else max(0.0, until - time.monotonic())):
            try:
                key = self._ledger.record(entry)
            except _MISUSE:
                raise
            except StoreBusy:
                return self._postpone(late)
            except Exception as error:  # noqa: BLE001 - whatever it is: the cases are known
                return self._failed(entry, error)
        self._tell(written, key)
        return None

    def _tell(self, written: _Written, key: int) -> None:
        """Hand out the key of what is written down by now, whatever comes of that."""
        try:
            if written is not None:
                written(key)
        except Exception as error:  # noqa: BLE001 - the cases are known, and so is the recall
            self._report("learn", error)

    def _room(self, most: float | None) -> bool:
        """Wait while many wait already; return whether nobody does any more."""
        enough = 0 if most is None else CROWDED
        with self._one_less:
            self._one_less.wait_for(lambda: len(self._late) <= enough, most)
            return not self._late

    def _failed(self, entry: RecallRecord, error: Exception) -> Exception:
        self._report("record", error)
        if entry.episode_id is not None:
            self.note_unopened(entry.episode_id)
        return error

    # -- later -------------------------------------------------------------------------------------------------------

    def _postpone(self, late: _Late) -> Exception | None:
        with self._one_less:
            waiting = len(self._late)
            accepted = waiting < MOST_LATE and not self._closed
            begins = accepted and not self._writing
            if accepted:
                self._late.append(late)
                self._writing = True
        if not accepted:
            return self._failed(late.entry, StoreBusy(f"{waiting} recalls wait to be written down; is another process stuck?"))
        if begins:
            with patience(None):
                self._writer.give(Job(functools.partial(self._catch_up, threading.get_ident())))
        return None

    def _catch_up(self, asker: int) -> None:
        """Write down what waits, in its order. It stays in the queue until then, so that nothing overtakes it."""
        may_wait = threading.get_ident() != asker  # no: the system has no thread left for this
        more = True
        while more:
            try:
                done = self._caught_up(self._late[0], may_wait=may_wait)
            except BaseException:
                self._let_go(goes_on=False)  # whoever comes next starts another writer
                raise
            if done:
                more = self._let_go()

    def _caught_up(self, late: _Late, *, may_wait: bool) -> bool:
        """Write one of them down; return False where that is worth another attempt."""
        try:
            with patience(_AT_ONCE if may_wait else 0.0):
                key = self._ledger.record(late.entry, unless_forgotten_since=late.seq)
        except StoreBusy as error:
            if may_wait and not self._closed:
                return False
            self._failed_late(late.entry, error)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed_late(late.entry, error)
        else:
            self._tell(late.written, key)
        return True

    def _failed_late(self, entry: RecallRecord, error: Exception) -> None:
        """Remember to say so: its cases were handed out without a word of this."""
        if entry.episode_id is not None:
            self._untold.append((entry.episode_id, str(error)))
        self._failed(entry, error)

    def _let_go(self, *, goes_on: bool = True) -> bool:
        """Take the first one out of the queue; return whether this thread has more to write down."""
        with self._one_less:
            self._late.popleft()
            self._writing = more = goes_on and bool(self._late)
            self._one_less.notify_all()
        return more

    def holds(self, episode_id: str) -> bool:
        """Say whether a recall of this episode waits to be written down."""
        with self._one_less:
            return any(late.entry.episode_id == episode_id for late in self._late)

    def wait_for(self, episode_id: str | None = None, *, thread: str | None = None) -> None:
        """Wait until what waits now is written down, of an episode, of a conversation, or all of it: somebody asks for it."""
        if not self._late:
            return
        left = seconds_left()
        with self._one_less:
            asked = [late for late in self._late if _is_of(late.entry, episode_id, thread)]
            if asked and not self._one_less.wait_for(
                lambda: not any(late is asked[-1] for late in self._late), WAITS if left is None else left
            ):
                raise StoreBusy("a recall waits to be written down while another process is writing; is that one stuck?")

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
        """Say whether this episode is not known because its recall failed; raise where nobody was told of that."""
        if episode_id not in self._unopened or self._ledger.episodes.one(episode_id) is not None:
            return False
        for untold, why in list(self._untold):
            if untold == episode_id:
                raise UnknownEpisode(f"the recall of episode {episode_id!r} could not be written down after all: {why}")
        return True


def _is_of(entry: RecallRecord, episode_id: str | None, thread: str | None) -> bool:
    return episode_id in (None, entry.episode_id) and thread in (None, entry.thread)
