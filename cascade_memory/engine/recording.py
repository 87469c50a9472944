"""Writes recalls to the ledger: at once if possible, otherwise when the ledger is free; remembers which recalls failed.

A recall that no caller waits for any more is not written. If it is written already, the episode that it opened is closed.

The ``Recall`` of a recall that failed is built here as well, and the row of an episode that is opened without a recall.
"""

from __future__ import annotations

import functools
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.chat_turns import turns
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import RecallRecord
from cascade_memory.domain.trust import ByWhom
from cascade_memory.domain.waiting import Askers, askers, patience, seconds_left
from cascade_memory.engine.request import RecallRequest
from cascade_memory.engine.workers import Job, Workers
from cascade_memory.errors import (
    EncoderMismatch,
    EpisodeClosed,
    InvalidInput,
    MemoryForked,
    StoreBusy,
    StoreReplaced,
    UnknownEpisode,
)

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_NOTHING = np.zeros(0, np.float32)
_MISUSE = (EpisodeClosed, InvalidInput, UnknownEpisode, MemoryForked, StoreReplaced, EncoderMismatch)
MOST_LATE = 256  # the greatest number of queued recalls; with more, a recall is not written down
CROWDED = 32  # queue length from which a recall waits (up to its deadline) before it joins the queue
_AT_ONCE = 1.0  # seconds to try, while the memory is being closed
_LOOK, _ASK = 0.002, 0.1  # seconds between two looks at the queue, and until a writer is asked for again
WAITS = 30.0  # seconds that a reward waits for its recall to be written down
_Written: TypeAlias = "Callable[[int], object] | None"  # called with the key of the written recall


def proposal_record(
    episode_id: str,
    namespace: int,
    query: str,
    vector: NDArray[np.float32],
    metadata: Mapping[str, MetadataValue],
    *,
    by: ByWhom,
) -> RecallRecord:
    """Build the row that opens an episode without a recall: its reward says nothing about showing or not showing a case."""
    nothing = np.zeros(0, np.int64)
    return RecallRecord(
        id=str(uuid.uuid4()),
        episode_id=episode_id,
        namespace=namespace,
        query=query,
        vector=vector,
        kind="search",
        k=0,
        at=time.time(),
        policy="none",
        policy_version=0,
        encoder="none",
        candidates=nothing,
        groups=nothing,
        features=_NOTHING,
        numbers=_NOTHING,
        chosen=nothing,
        shown=False,
        baseline=math.nan,
        context=_NOTHING,
        metadata=metadata,
        actor=by.actor,
        channel=by.channel,
    )


def failed_recall(request: RecallRequest, error: str) -> Recall:
    """Build a recall without cases that names the error."""
    from cascade_memory.domain.explanation import Explanation

    nothing = Explanation(candidates=(), abstained=False, baseline=math.nan, rewards=0, policy="none")
    return Recall(
        id=str(uuid.uuid4()),
        episode_id=request.episode_id or str(uuid.uuid4()),
        namespace=request.namespace,
        query=request.query,
        cases=(),
        abstained=False,
        error=error,
        template=request.template,
        as_turns=turns,
        explainer=lambda: nothing,
        memory=None if request.search else request.memory,
    )


class _Late(NamedTuple):
    entry: RecallRecord
    seq: int  # log position at the recall: what was forgotten since must not return
    written: _Written
    askers: Askers


class Recording:
    """Writes recalls to the ledger. If that fails, the caller gets the cases all the same.

    While another process is writing, recalls queue up, and a thread writes them in order: a recall in a burst of two hundred
    must not lose its reward.
    """

    def __init__(self, ledger: Ledger, report: Callable[[str, Exception], None]) -> None:
        self._ledger, self._report = ledger, report
        self._late: deque[_Late] = deque()
        self._changing = threading.Lock()
        self._catching_up = threading.Lock()
        self._writer = Workers("cascade-memory-late", 1)
        self._closer = Workers("cascade-memory-left", 1)
        self._left = 0  # episodes that nobody will end, and that are being closed
        self._writing = False  # True while a thread is writing the queue
        self._closed = False
        self._unopened: deque[str] = deque(maxlen=1024)
        self._unreported: deque[tuple[str, str]] = deque(maxlen=1024)  # failed recalls whose caller does not know it, and why

    def write(self, entry: RecallRecord, most: float | None, seq: int, written: _Written) -> Exception | None:
        """Write a recall, and pass its key to ``written``; return the error if the recall cannot be stored.

        This takes at most ``most`` seconds: if it takes longer, the recall is queued. The caller reports an error that is
        returned; if a queued recall fails later, this class reports it. ``seq`` is the last log line that the recall has seen.
        """
        until = None if most is None else time.monotonic() + most
        late = _Late(entry, seq, written, askers())
        if _is_unwanted(late):
            return self._drop(late)
        if self._late and not self._room(most):
            return self._postpone(late)
        with patience(None if until is None else max(0.0, until - time.monotonic())):
            try:
                key = self._ledger.record(entry)
            except _MISUSE:
                raise
            except StoreBusy:
                return self._postpone(late)
            except Exception as error:  # noqa: BLE001 - writing may fail in any way, but the cases are known
                return self._failed(entry, error)
        self._pass_on(late, key)
        return None

    def _pass_on(self, late: _Late, key: int) -> None:
        """Pass on the key of a recall that is written now; a failure of ``written`` is only counted."""
        if late.askers and late.entry.episode_id is not None:
            self._note_opened(late, key, late.entry.episode_id)
        try:
            if late.written is not None:
                late.written(key)
        except Exception as error:  # noqa: BLE001 - the cases are known, and so is the recall
            self._report("learn", error)

    def _room(self, most: float | None) -> bool:
        """Wait at most ``most`` seconds while the queue is long; return whether the queue is empty now."""
        enough = 0 if most is None else CROWDED
        self._wait(lambda: len(self._late) <= enough, most)
        return not self._late

    def _wait(self, over: Callable[[], bool], most: float | None) -> bool:
        """Wait until ``over()`` is true, for ``most`` seconds at most; return whether it is.

        No condition of ``threading`` is used: an interrupt may leave its lock held.
        """
        now = time.monotonic()
        until, ask = None if most is None else now + most, now + _ASK
        while not over():
            now = time.monotonic()
            if until is not None and now > until:
                return False
            if now > ask:
                self._start_writer()  # an interrupt may have come before one was started
                ask = now + _ASK
            time.sleep(_LOOK)
        return True

    def _failed(self, entry: RecallRecord, error: Exception) -> Exception:
        if entry.episode_id is not None:
            self.note_unopened(entry.episode_id)
        return error

    # -- later -------------------------------------------------------------------------------------------------------

    def _postpone(self, late: _Late) -> Exception | None:
        with self._changing:
            waiting = len(self._late)
            accepted = waiting < MOST_LATE and not self._closed
            if accepted:
                self._late.append(late)
        if not accepted:
            return self._failed(late.entry, StoreBusy(f"{waiting} recalls wait to be written down; is another process stuck?"))
        self._start_writer()
        return None

    def _start_writer(self) -> None:
        """Let a thread write the queue, unless one is doing so. If several are started at once, the first does all work."""
        if not self._writing:
            with patience(None):
                self._writer.give(Job(functools.partial(self._catch_up, threading.get_ident())))

    def _catch_up(self, asker: int) -> None:
        """Write the queue in order. A recall stays in the queue until it is written, so that no later recall overtakes it."""
        may_wait = threading.get_ident() != asker  # False: no thread could be started, so the caller does the work
        with self._catching_up:  # one at a time, also where an interrupt has made somebody start another one
            try:
                while self._goes_on():
                    done = True  # also if it fails: then the others are not kept waiting
                    try:
                        done = self._caught_up(self._late[0], may_wait=may_wait)
                    finally:
                        if done:
                            self._late.popleft()
            finally:
                self._writing = False  # whoever waits starts another one

    def _caught_up(self, late: _Late, *, may_wait: bool) -> bool:
        """Try to write one queued recall; return False if it should be tried again."""
        if _is_unwanted(late):
            self._drop(late)
            return True
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
            self._pass_on(late, key)
        return True

    def _failed_late(self, entry: RecallRecord, error: Exception) -> None:
        """Remember a failure to report later: the cases were returned before it happened."""
        if entry.episode_id is not None:
            self._unreported.append((entry.episode_id, str(error)))
        self._report("record", error)
        self._failed(entry, error)

    def _goes_on(self) -> bool:
        """Say whether there is more to write; if not, the next recall starts another writer."""
        with self._changing:
            self._writing = bool(self._late)
            return self._writing

    def holds(self, episode_id: str) -> bool:
        """Say whether a recall of this episode waits to be written down."""
        with self._changing:
            return any(late.entry.episode_id == episode_id for late in self._late)

    def wait_for(self, episode_id: str | None = None, *, thread: str | None = None) -> None:
        """Wait until queued recalls are written: those of ``episode_id``, of the conversation ``thread``, or all.

        Raise ``StoreBusy`` if that takes too long. Also wait until the episodes of abandoned recalls, which nobody will end,
        are closed.
        """
        if not self._late and not self._left:
            return
        left = seconds_left()
        within = WAITS if left is None else left
        self._wait(lambda: not self._left, within)
        awaited = [late for late in list(self._late) if _is_of(late.entry, episode_id, thread)]
        if awaited and not self._wait(lambda: not any(late is awaited[-1] for late in list(self._late)), within):
            raise StoreBusy("a recall waits to be written down while another process is writing; is that process stuck?")

    def close(self) -> None:
        """Write the queue; give up after a while."""
        try:
            self.wait_for()
        except StoreBusy as error:
            self._report("record", error)
        self._closed = True

    # -- nobody waits ------------------------------------------------------------------------------------------------

    def _drop(self, late: _Late) -> None:
        """Do not write a recall whose run has ended: nobody would end the episode that it opens."""
        if late.entry.episode_id is not None:
            self.note_unopened(late.entry.episode_id)

    def _note_opened(self, late: _Late, key: int, episode_id: str) -> None:
        """Let the askers of a recall close the episode that it has opened, in case they stop waiting too early.

        An asker is whoever waits for the recall; see ``domain.waiting``.
        """
        close = functools.partial(self._close_soon, key, episode_id)
        for asker in late.askers:
            if late.entry.opens_episode or asker.ends_named:
                asker.opened(close)

    def _close_soon(self, key: int, episode_id: str) -> None:
        self.note_unopened(episode_id)
        with self._changing:
            self._left += 1
        with patience(None):
            self._closer.give(Job(functools.partial(self._close_opened, key)))

    def _close_opened(self, key: int) -> None:
        try:
            self._ledger.episodes.close_opened_by(key)
        except Exception as error:  # noqa: BLE001 - nobody waits for it; the episode stays open
            self._report("record", error)
        finally:
            with self._changing:
                self._left -= 1

    # -- failed recalls ----------------------------------------------------------------------------------------------

    def note_unopened(self, episode_id: str) -> None:
        """Remember that a recall failed before its episode was written down."""
        self._unopened.append(episode_id)

    def failed_to_open(self, episode_id: str) -> bool:
        """Say whether an episode is missing because its recall failed, or closed because nobody waited for the recall.

        Raise ``UnknownEpisode`` if the caller does not know yet that the recall failed.
        """
        if episode_id not in self._unopened:
            return False
        found = self._ledger.episodes.one(episode_id)
        if found is not None:
            return found.status == "censored"  # its recall was written down after all, when nobody waited for it any more
        for failed, why in list(self._unreported):
            if failed == episode_id:
                raise UnknownEpisode(f"the recall of episode {episode_id!r} could not be written down after all: {why}")
        return True


def _is_unwanted(late: _Late) -> bool:
    return any(asker.left for asker in late.askers)


def _is_of(entry: RecallRecord, episode_id: str | None, thread: str | None) -> bool:
    return episode_id in (None, entry.episode_id) and thread in (None, entry.thread)
