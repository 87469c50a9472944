"""Keeps the mirror fed, off the hot path, and never trusts one that was not closed cleanly."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from cascade_memory.domain.patience import patience
from cascade_memory.engine.feeding_pace import FeedingPace
from cascade_memory.engine.mirror_mark import CHANGED, Mark, removals
from cascade_memory.engine.mirroring import put, tell_anew
from cascade_memory.engine.parts import MirrorBuild, Parts
from cascade_memory.errors import StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ports.case_mirror import CaseMirror

MIRROR = "mirror"  # before the place of each: how far it was fed
BATCH, _HURRIED_BATCH = 64, 1_000  # cases that are fed at once; when somebody waits for it
INTERVAL = 1.0  # seconds: new cases are collected for so long, since a single write costs as much as a batch
_PATIENCE = 60.0  # seconds that a purge waits for the process that feeds the mirror
REST = 3.0  # times as long as a batch took: the agent's threads come first
WORTH_ASKING = 20_000  # cases of a namespace from which on its index will be asked rather than the exact scan
BUILD_ELSEWHERE = 2_000  # cases: fewer are fed again here, more are built in another process
_log = logging.getLogger(__name__)


class MirrorFeeder:
    """One thread of the owning process. In any other process it waits for the owner to die, and takes over."""

    def __init__(
        self,
        parts: Parts,
        mirror: CaseMirror,
        build: Callable[[], MirrorBuild] | None,
        idle: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._parts, self._mirror, self._build, self.pace = parts, mirror, build, FeedingPace(idle)
        self._meta = f"{MIRROR}{mirror.place}"  # a folder that changes between its own Chroma and a server has two
        self._working = threading.RLock()
        self._stop = threading.Event()
        self._rest = threading.Event()
        self._mark = Mark(0, 0, clean=True)
        self._building: MirrorBuild | None = None
        self._build_due = False
        self._serving = False  # open, warm, and in step with the mark
        self._broken = False  # something failed: nothing is done before the mirror has recovered
        self._unchecked = mirror.shared  # a server may have lost what it was fed
        self.owner = False
        self.failures = 0
        self.last_error: str | None = None
        with patience(1.0):  # opening a folder does not wait for long
            self._try_to_own()
        self._thread = threading.Thread(target=self._run, name="cascade-memory-feeder", daemon=True)
        self._thread.start()

    # -- what others ask ---------------------------------------------------------------------------------------------

    @property
    def covered(self) -> int:
        """The greatest case key that the mirror holds; 0 while it cannot be asked."""
        return self._mark.key if self._serving else 0

    @property
    def state(self) -> str:
        """One word for people."""
        if not self.owner:
            return "follower"
        if self._building is not None or self._build_due:
            return "rebuilding"
        return "failing" if self.last_error else "clean" if self._mark.clean else "open"

    @property
    def lag(self) -> int:
        """How much the mirror has not been fed: cases, and lines of the log that took some away."""
        mark = self._mark if self.owner else Mark.read(self._parts.ledger.facts.get(self._meta))  # as far as another noted it
        return self._parts.ledger.cases.behind(mark.key, mark.seq)

    # -- owning ------------------------------------------------------------------------------------------------------

    def _try_to_own(self) -> None:
        lock = self._parts.lock
        if self.owner or lock is None or self._parts.ledger.read_only or not lock.try_acquire():
            return
        try:
            self._mark = Mark.read(self._parts.ledger.facts.get(self._meta))
            if not self._mirror.shared and not (self._mark.trusted and self._mirror.exists()):
                self._start_rebuild()
        except BaseException as error:
            lock.release()
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                return  # nothing can be written at the moment: it is tried again
            raise
        self.owner = True

    def _start_rebuild(self) -> None:
        """Throw the mirror away and feed a new one from the ledger, in another process where there is much to feed."""
        self._parts.ledger.check()  # the folder may be another memory's by now
        self._abandon_build()
        self._serving = False
        self._mirror.discard()
        # At the end of the log: what it says of the past is no news to a mirror that is fed from the present.
        self._note(Mark(0, self._parts.ledger.head(), clean=True))  # without any case: made anew by whoever opens it next
        self._build_due = self._build is not None and self._parts.ledger.cases.count(None) >= BUILD_ELSEWHERE

    def _note(self, mark: Mark) -> None:
        self._parts.ledger.facts.set(self._meta, mark.written())
        self._mark = mark

    # -- feeding -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            try:
                with self._working:
                    self.tick()
            except Exception as error:  # noqa: BLE001 - the mirror may fail in any way; it is only a mirror
                self._failed(error)

    def tick(self) -> None:
        """Do what is due at this moment; the thread comes by every ``INTERVAL``."""
        if not self.owner:
            self._try_to_own()
        if self._serving and not self._mirror.answers:
            self._serving = False
            if self._mirror.trouble:
                self._stumbled(StoreError(self._mirror.trouble))
        if self.pace.backs_off:
            return
        if not self.owner:
            self._follow()
        elif self.ready():
            self._warm_up()
            began = time.perf_counter()
            while self._may_write() and self.feed_once():
                self._rest.wait(REST * (time.perf_counter() - began))
                began = time.perf_counter()

    def _follow(self) -> None:
        """Know what the owner has fed, if anybody may ask the mirror."""
        if self._mirror.shared:
            self._mark = Mark.read(self._parts.ledger.facts.get(self._meta))
            self._warm_up()

    def _may_write(self) -> bool:
        """Say whether this is a good moment: nobody waits for an answer, or the mirror has waited long enough."""
        return not self._stop.is_set() and (self._mirror.shared or self.pace.is_good(self._is_behind))

    def _is_behind(self) -> bool:
        """Say whether there is anything to feed, without counting it: of a hundred thousand cases that takes long."""
        return self._parts.ledger.head() > self._mark.seq or bool(self._parts.ledger.cases.after(self._mark.key, 1))

    def ready(self) -> bool:
        """Recover from a failure, wait for a mirror that is built elsewhere; return whether this one can be fed."""
        if self._broken:
            if not self._mirror.recover():
                self._start_rebuild()
            self._broken, self._unchecked = False, self._mirror.shared
        if self._unchecked:
            self._check_shared()
        return self._built()

    def _check_shared(self) -> None:
        """Compare counts with a server that was away: it may have lost what it had, or have it under older names."""
        ledger = self._parts.ledger
        if not self._mark.current:
            self._start_rebuild()
        for name, number in ledger.namespaces().items():
            fed = ledger.cases.count(number, until=self._mark.key)
            if fed and self._mirror.count(name) < fed:
                self._start_rebuild()
                break
        self._unchecked = False

    def _built(self) -> bool:
        """Return True unless a mirror is still to be built elsewhere."""
        if self._build_due and self._build is not None:
            self._build_due, self._building = False, self._build()
        if self._building is None:
            return True
        status = self._building.poll()
        if status is None:
            return False
        building, self._building = self._building, None
        if status == 0:
            key, seal = building.finish()
            self._note(Mark(key, self._mark.seq, clean=True, seal=seal))  # the log as it was when the build began
        else:
            building.abandon()
            self._count(StoreError(f"rebuilding the mirror failed with status {status}; feeding it here instead"))
        return True

    def _warm_up(self) -> None:
        """Open a mirror that recall will want to ask, before it does: the first question takes seconds to answer."""
        ledger = self._parts.ledger
        if self._serving or not self._mark.key or not self._mark.current:
            return
        large = [name for name, number in ledger.namespaces().items() if ledger.cases.count(number) >= WORTH_ASKING]
        if large and self._mark_dirty():
            for name in large:
                self._mirror.prepare(name, np.ones(self._parts.embedder.dimension, np.float32))
            self._serving, self.last_error = True, None

    def _mark_dirty(self) -> bool:
        """Note, on disk and before it is opened, that the mirror is in use; False where it is not what was closed: it goes."""
        if not self._mark.clean or self._mirror.shared:
            return True
        if self._mark.key and not self._mirror.is_sealed(self._mark.seal):
            self._count(StoreError(CHANGED), "made anew from the ledger")
            self._start_rebuild()
            return False
        if not self._mark.key and self._mirror.exists():
            self._mirror.discard()
            if self._mirror.exists():
                raise StoreError("what stands in the place of Chroma's folder cannot be deleted: delete it by hand")
        self._note(replace(self._mark, clean=False))
        return True

    def feed_once(self, size: int = BATCH) -> bool:
        """Feed one batch; return whether there may be more."""
        ledger = self._parts.ledger
        ledger.check()
        changes = ledger.tail(self._mark.seq, 10_000)
        rows = ledger.cases.after(self._mark.key, size)
        if not (changes or rows):
            return False
        if any(change.purges for change in changes):
            self._start_rebuild()  # its files keep what was deleted from them
            return self._built()
        names = {number: name for name, number in ledger.namespaces().items()}
        gone, wiped = removals(changes, names)
        seq = changes[-1].seq if changes else self._mark.seq
        retold = [change.ref for change in changes if change.retells_case and change.ref <= self._mark.key]
        if not (rows or gone or wiped or retold):
            self._mark = replace(self._mark, seq=seq)
            return len(changes) == 10_000
        if not self._mark_dirty():
            return self._built()
        for namespace, ids in gone.items():
            self._mirror.delete(names[namespace], ids)
        tell_anew(self._mirror, ledger, retold)
        if wiped:
            self._wipe(wiped, names, seq)
            return True
        put(self._mirror, rows)
        self._fed(Mark(rows[-1][0].key if rows else self._mark.key, seq, clean=self._mirror.shared))
        return True

    def _fed(self, mark: Mark) -> None:
        self._serving, self.last_error = True, None
        self.pace.succeeded()
        if self._mirror.shared:
            self._note(mark)  # for those who ask it in other processes, and for whoever feeds it after us
        else:
            self._mark = mark

    def _wipe(self, namespaces: list[int], names: dict[int, str], seq: int) -> None:
        """Drop collections, and feed again what was put there after the wipe: rows may have run ahead of the log."""
        key = self._mark.key
        for namespace in namespaces:
            self._mirror.drop(names[namespace])
            first = self._parts.ledger.scan(namespace, 0, 1)
            if len(first):
                key = min(key, int(first.keys[0]) - 1)
        self._fed(Mark(key, seq, clean=self._mirror.shared))

    def _failed(self, error: Exception) -> None:
        self._broken = True
        self._stumbled(error)

    def _stumbled(self, error: Exception) -> None:
        """It could not be asked: recall scans by itself, and some time goes by before it is tried again."""
        self._count(error)
        self._serving = False
        self.pace.failed()

    def _count(self, error: Exception, then: str = "tried again") -> None:
        self.failures += 1
        self.last_error = f"{type(error).__name__}: {error}"
        _log.warning("feeding the mirror failed (%s); it will be %s", self.last_error, then)

    # -- at once -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Feed everything there is, now."""
        with self._hurried():
            self._check_owner()
            try:
                self._feed_all()
                return
            except Exception as error:  # noqa: BLE001 - an earlier process may have left it damaged: once more, from scratch
                self._failed(error)
            try:
                self._feed_all()
            except Exception as error:
                self._failed(error)
                raise StoreError(
                    f"Chroma could not be fed ({self.last_error}); nothing is lost: the ledger has it all, and Chroma is made "
                    "anew once it can be written. Is there room on the disk?"
                ) from error

    def _feed_all(self) -> None:
        while not self.ready() or self.feed_once(_HURRIED_BATCH):
            time.sleep(0.02 if self._building is not None else 0)

    def count(self, namespace: str) -> int:
        """Return how many cases of a namespace the mirror holds."""
        with self._hurried():
            return self._mirror.count(namespace) if self._mark_dirty() else 0

    def is_sealed(self) -> bool:
        """Say whether a mirror that is closed is as it was closed; True while it is open, or where there is none yet."""
        with self._working:
            return not self.owner or self._mirror.shared or not self._mark.trusted or self._mirror.is_sealed(self._mark.seal)

    def _check_owner(self) -> None:
        self._try_to_own()
        if not self.owner:
            if why := self._parts.ledger.read_only:
                raise StoreUnwritable(f"Chroma is not fed while the memory can only be read: {why}")
            raise StoreError("another process owns this folder and feeds Chroma; do this there, or close it there first")

    def rebuild(self) -> None:
        """Throw the mirror away and feed it again, here and now."""
        with self._hurried():
            self._check_owner()
            self._start_rebuild()
            self.flush()

    def purge(self, line: int) -> tuple[str, ...]:
        """See to it that the mirror forgets everything up to a line of the log; return what may be left, in words."""
        try:
            with self._hurried():
                if self.owner and self._mark.seq < line:
                    self._start_rebuild()
                    if self._mirror.exists() and not self._mirror.shared:
                        return ("the folder of Chroma, which cannot be deleted: is another program reading it?",)
        except Exception as error:  # noqa: BLE001 - whatever the mirror does: the rest has been purged
            self._failed(error)
            return (f"Chroma, which could not be made anew yet ({self.last_error}): purge again",)
        latest = time.monotonic() + _PATIENCE
        while Mark.read(self._parts.ledger.facts.get(self._meta)).seq < line:
            if time.monotonic() > latest:
                return ("Chroma, which another process feeds and has not made anew yet",)
            time.sleep(0.05)
        return (self._mirror.residue,) if self._mirror.residue else ()

    @contextlib.contextmanager
    def _hurried(self) -> Generator[None, None, None]:
        """Work without rests, on whichever thread gets to it first."""
        self._rest.set()
        with self._working:
            try:
                yield
            finally:
                if not self._stop.is_set():
                    self._rest.clear()

    def _abandon_build(self) -> None:
        self._build_due = False
        if self._building is not None:
            self._building.abandon()
            self._building = None

    def close(self, *, feed: bool) -> None:
        """Stop, feed what is left if asked to, close the mirror and note that it was closed cleanly."""
        self._stop.set()
        self._rest.set()
        self._thread.join(timeout=60)
        if not self._working.acquire(timeout=60):
            return  # a call into the mirror hangs; the system lets go of the folder when the process ends
        with contextlib.ExitStack() as stack:
            stack.callback(self._working.release)
            if not self.owner:
                self._mirror.close()
                return
            building = self._building is not None or self._build_due
            if feed and not building:
                with contextlib.suppress(StoreError):  # counted and logged; the next opening feeds it
                    self.flush()
            try:
                self._abandon_build()
                self._serving = False
                if self._broken:
                    return  # its client may hang; what is noted of it is that it was not closed
                self._mirror.close()
                if not (self._mark.clean or building):
                    self._note(replace(self._mark, clean=True, seal=self._mirror.seal()))
            except Exception as error:  # noqa: BLE001 - not clean, then: the next opening builds it anew
                self._failed(error)
            finally:
                self.owner = False
                if self._parts.lock is not None:
                    self._parts.lock.release()
