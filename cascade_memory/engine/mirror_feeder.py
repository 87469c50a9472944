"""Feeds the mirror in the background. A mirror that was not closed cleanly is never trusted."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from cascade_memory.domain.daemon import Daemon
from cascade_memory.domain.interruptible import interruptible, take
from cascade_memory.domain.waiting import Flag, patience
from cascade_memory.engine.feeding_pace import FeedingPace
from cascade_memory.engine.mirror_projection import MirrorProjection
from cascade_memory.engine.parts import MirrorBuild, Parts
from cascade_memory.errors import StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ports.case_index import CaseMirror
from cascade_memory.ports.lock import Owning
from cascade_memory.redaction import redact_secrets
from cascade_memory.redaction.saying import log_of

BATCH, _HURRIED_BATCH = 64, 1_000  # cases per batch; the second number if a caller waits for it
INTERVAL = 1.0  # seconds for which new cases are collected: one case costs as much as a batch
_PATIENCE = 60.0  # seconds that a purge waits for the process that feeds the mirror
REST = 3.0  # pause after a batch, as a multiple of its duration: the agent's threads come first
_SHARE = 20  # looking for large namespaces pauses for 20 times as long as it took, since there may be thousands
WORTH_ASKING = 20_000  # cases: for a namespace of this size, recall asks Chroma's index instead of scanning exactly
_log = log_of(__name__)


class MirrorFeeder:
    """The thread that feeds the mirror. In a process that does not own the mirror, it waits to take over from the owner."""

    def __init__(
        self,
        parts: Parts,
        mirror: CaseMirror,
        build: Callable[[], MirrorBuild] | None,
        idle: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._parts, self._mirror, self.pace = parts, mirror, FeedingPace(idle)
        self._projection = MirrorProjection(parts, mirror, build, note_failure=self._count, note_success=self._succeeded)
        self._working = threading.RLock()
        self._stop = Flag()
        self._rest = Flag()
        self._broken = False  # something failed: the mirror has to recover first
        self._next_look = 0.0  # on the monotonic clock: when to look again for namespaces that are worth asking for
        self._unchecked = mirror.shared  # a server may have lost cases
        self._stands_aside = False  # the mirror is left to other processes
        self.owner = False
        self.failures = 0
        self.last_error: str | None = None
        with patience(1.0):  # opening a folder should not wait long
            self._try_to_own()
        self._thread = Daemon(self._run, "cascade-memory-feeder")

    def start(self) -> None:
        """Begin to feed in the background."""
        self._thread.start()

    # -- what others ask ---------------------------------------------------------------------------------------------

    @property
    def covered(self) -> int:
        """The greatest case key that the mirror holds; 0 while the mirror cannot be asked."""
        return self._projection.mark.key if self._projection.serving else 0

    @property
    def state(self) -> str:
        """The state of the mirror in one word, for people."""
        if not self.owner:
            return "follower"
        if self._projection.is_building:
            return "rebuilding"
        return "failing" if self.last_error else "clean" if self._projection.mark.clean else "open"

    @property
    def lag(self) -> int:
        """How far the mirror is behind: the number of new cases, plus the log lines that removed cases."""
        mark = self._projection.mark if self.owner else self._projection.noted()  # the mark that another process noted
        return self._parts.ledger.cases.behind(mark.key, mark.seq)

    # -- owning ------------------------------------------------------------------------------------------------------

    def _try_to_own(self) -> None:
        lock = self._parts.lock
        if self.owner or self._stands_aside or lock is None or self._parts.ledger.read_only or not lock.try_acquire():
            return
        try:
            mark = self._projection.mark = self._projection.noted()
            if not self._mirror.shared and not (mark.trusted and self._mirror.exists()):
                self._projection.rebuild()
        except BaseException as error:
            lock.release()
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                return  # nothing can be written now: the next tick tries again
            raise
        self.owner = True

    def stand_aside(self) -> None:
        """Leave the mirror to other processes from now on, except for a purge: agents need it more than this process does."""
        with self._hurried():
            self._stands_aside = True
            if self.owner:
                self._let_go()

    def _is_relieved(self) -> bool:
        """Note and return whether another process has taken over the mirror, because this one was inactive for long."""
        if self.owner and self._parts.lock is not None and not self._still_owner(self._parts.lock):
            self.owner = False
            self._projection.serving = False
            _log.info("another process has taken over feeding Chroma")
            return True
        return False

    @staticmethod
    def _still_owner(lock: Owning) -> bool:
        try:
            return lock.keep()
        except StoreError:  # the ledger cannot be reached: nothing can be fed, so nothing needs to be given up
            return True

    # -- feeding -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            try:
                with self._working:
                    self.tick()
            except Exception as error:  # noqa: BLE001 - the mirror may fail in any way; it is only a mirror
                if not self._is_relieved():
                    self._failed(error)

    def tick(self) -> None:
        """Do what is due now; the thread calls this every ``INTERVAL`` seconds."""
        self._is_relieved()
        if not self.owner:
            self._try_to_own()
        if self._projection.serving and not self._mirror.answers:
            self._projection.serving = False
            if self._mirror.trouble:
                self._query_failed(StoreError(self._mirror.trouble))
        if self.pace.backs_off:
            return
        if not self.owner:
            self._follow()
        elif self.ready():
            self._warm_up()
            began = time.perf_counter()
            while self._may_write() and not self._rest.is_set and self.feed_once():
                self._rest.wait(REST * (time.perf_counter() - began))
                began = time.perf_counter()

    def _follow(self) -> None:
        """Read how far the owner has fed the mirror, if other processes may query the mirror."""
        if self._mirror.shared:
            self._projection.mark = self._projection.noted()
            self._warm_up()

    def _may_write(self) -> bool:
        """Say whether this is a good moment: no caller waits for an answer, or the mirror has waited long enough."""
        return not self._stop.is_set and (self._mirror.shared or self.pace.is_good(self._is_behind))

    def _is_behind(self) -> bool:
        """Say whether there is anything to feed, without counting: counting a hundred thousand cases takes long."""
        ledger, mark = self._parts.ledger, self._projection.mark
        return ledger.head() > mark.seq or bool(ledger.cases.after(mark.key, 1))

    def ready(self) -> bool:
        """Recover from a failure, or take over a mirror that another process built; return whether the mirror can be fed."""
        if self._broken:
            if not self._mirror.recover():
                self._projection.rebuild()
            self._broken, self._unchecked = False, self._mirror.shared
        if self._unchecked:
            self._projection.check_shared()
            self._unchecked = False
        return self._projection.is_built()

    def feed_once(self, size: int = BATCH) -> bool:
        """Feed one batch; return whether there may be more."""
        if self._is_relieved():
            return False
        self._parts.ledger.check()
        return self._projection.feed(size)

    def _warm_up(self) -> None:
        """Open a mirror that recalls will soon query, and query it once: the first query takes seconds."""
        ledger, projection = self._parts.ledger, self._projection
        if projection.serving or not projection.mark.key or not projection.mark.current or time.monotonic() < self._next_look:
            return
        began = time.monotonic()
        large = [name for name, number in ledger.namespaces().items() if ledger.cases.count(number) >= WORTH_ASKING]
        self._next_look = time.monotonic() + _SHARE * (time.monotonic() - began)
        if large and projection.mark_dirty():
            for name in large:
                self._mirror.prepare(name, np.ones(self._parts.embedder.dimension, np.float32))
            projection.serving, self.last_error = True, None

    def _failed(self, error: Exception) -> None:
        self._broken = True
        self._query_failed(error)

    def _query_failed(self, error: Exception) -> None:
        """Count a failed query: recalls then scan the cases themselves, and the mirror is tried again after some time."""
        self._count(error)
        self._projection.serving = False
        self.pace.failed()

    def _succeeded(self) -> None:
        self.last_error = None
        self.pace.succeeded()

    def _count(self, error: Exception, then: str = "tried again") -> None:
        self.failures += 1
        self.last_error = redact_secrets(f"{type(error).__name__}: {error}")
        _log.warning("feeding the mirror failed (%s); it will be %s", self.last_error, then)

    # -- at once -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Feed everything now."""
        with self._hurried():
            self._check_owner()
            try:
                self._feed_all()
                return
            except Exception as error:  # noqa: BLE001 - an earlier process may have left it damaged: once more, from scratch
                self._is_relieved()
                if self.owner:
                    self._failed(error)
            self._check_owner()  # one that was away for longer than its lease takes it again, if no other one has
            try:
                self._feed_all()
            except Exception as error:
                self._failed(error)
                raise StoreError(
                    f"Chroma could not be fed ({self.last_error}). Nothing is lost: the ledger holds all cases, and Chroma is "
                    "built again once it can be written. Is the disk full?"
                ) from error

    def _feed_all(self) -> None:
        while not self.ready() or self.feed_once(_HURRIED_BATCH):
            time.sleep(0.02 if self._projection.is_building else 0)
        if not self.owner:
            raise StoreError("this process was away for so long that it had to give up feeding Chroma")

    def count(self, namespace: str) -> int:
        """Return how many cases of a namespace the mirror holds."""
        with self._hurried():
            return self._mirror.count(namespace) if self._projection.mark_dirty() else 0

    def is_sealed(self) -> bool:
        """Say whether a closed mirror is unchanged since it was closed; True while it is open, or if there is none yet."""
        with self._working:
            mark = self._projection.mark
            return not self.owner or self._mirror.shared or not mark.trusted or self._mirror.is_sealed(mark.seal)

    def _check_owner(self) -> None:
        self._try_to_own()
        if not self.owner:
            if why := self._parts.ledger.read_only:
                raise StoreUnwritable(f"Chroma is not fed while the memory can only be read: {why}")
            raise StoreError("another process owns this folder and feeds Chroma; run this there, or close it there first")

    def rebuild(self) -> None:
        """Delete the mirror and feed it again from the beginning; return when it is complete."""
        with self._hurried():
            self._check_owner()
            self._projection.rebuild()
            self.flush()

    def purge(self, line: int) -> tuple[str, ...]:
        """Rebuild the mirror without what was removed up to a line of the log.

        Return texts for people that say where forgotten data may remain; none if none can remain.
        """
        aside, self._stands_aside = self._stands_aside, False
        try:
            with self._hurried():
                if aside:
                    self._try_to_own()
                if self.owner and self._projection.seq < line:
                    self._projection.rebuild()
                    if self._mirror.exists() and not self._mirror.shared:
                        return ("the folder of Chroma, which cannot be deleted: is another program reading it?",)
        except Exception as error:  # noqa: BLE001 - the mirror may fail in any way; the rest has been purged
            self._failed(error)
            return (f"Chroma, which could not be rebuilt yet ({self.last_error}): purge again",)
        finally:
            if aside:
                self.stand_aside()
        latest = time.monotonic() + _PATIENCE
        while self._projection.noted().seq < line:
            if time.monotonic() > latest:
                return ("Chroma, which another process feeds and has not rebuilt yet",)
            time.sleep(0.05)
        return (self._mirror.residue,) if self._mirror.residue else ()

    @interruptible
    def _hurried(self) -> Generator[None, None, None]:
        """Interrupt the background feeding and its pauses, and let no other thread feed during a ``with`` block."""
        try:
            self._rest.set()
            with self._working:
                try:
                    yield
                except Exception:
                    raise
                except BaseException:
                    self._broken = True  # nobody knows what an interrupt has left undone
                    raise
        finally:
            if not self._stop.is_set:
                self._rest.is_set = False

    def close(self, *, feed: bool) -> None:
        """Stop the thread, feed the rest if ``feed`` is true, close the mirror, and note that it was closed cleanly."""
        self._stop.set()
        self._rest.set()
        self._thread.join(60)
        held: list[bool] = []
        try:
            if not take(self._working, held, 60):
                return  # a call into the mirror hangs; the system releases the folder when the process ends
            if not self.owner:
                self._mirror.close()
                return
            if feed and not self._projection.is_building:
                with contextlib.suppress(StoreError):  # counted and logged; the next process to open the folder feeds the rest
                    self.flush()
            self._let_go()
        finally:
            if True in held:
                self._working.release()

    def _let_go(self) -> None:
        """Close the mirror, note that it was closed cleanly, and let another process own it."""
        building = self._projection.is_building
        try:
            self._projection.abandon_build()
            self._projection.serving = False
            if self._broken:
                return  # its client may hang; the mark says that the mirror was not closed cleanly
            self._mirror.close()
            mark = self._projection.mark
            if not (mark.clean or building):
                self._projection.note(replace(mark, clean=True, seal=self._mirror.seal()))
        except Exception as error:  # noqa: BLE001 - not clean, then: the next opening builds it anew
            self._failed(error)
        finally:
            self.owner = False
            if self._parts.lock is not None:
                self._parts.lock.release()
