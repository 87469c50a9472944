"""The state of one namespace: its index, and what was learned. Namespaces share nothing of it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from cascade_memory.cycle.learn import WINDOW
from cascade_memory.cycle.retain import surplus
from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.records import Change
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import CascadeError, StoreCorrupt
from cascade_memory.learning.learner import Learner
from cascade_memory.learning.ranker import Ranker
from cascade_memory.learning.screen import Screen
from cascade_memory.learning.shadow import Shadow
from cascade_memory.ports.encoders import Candidates, PairEncoder
from cascade_memory.ports.policy import Policy
from cascade_memory.redaction.saying import log_of

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_SCAN = 4_096  # cases read at once
_EVICTED_AT_ONCE = 200  # per transaction
_CASE = 512  # bytes that a case takes beside its vector: its keys, and its share of the word counts and clusters
_EMPTY = 128 * 1024  # bytes that a state takes without cases
_ELSEWHERE = 2.0  # seconds after which to look whether another process still does the tidying
_log = log_of(__name__)


def usable_cases(ledger: Ledger, namespace_id: int, dimension: int, until: int | None = None) -> Iterator[Candidates]:
    """Yield the cases of a namespace in batches, oldest first; with ``until``, only up to this key.

    Cases whose vectors have another length than ``dimension`` are left out: an index cannot hold them.
    """
    after = 0
    while len(rows := ledger.scan(namespace_id, after, _SCAN, until=until)):
        after = int(rows.keys[-1])
        # Other lengths come from an edited ledger: the doctor reports them.
        if rows.vectors.shape[1] == dimension:
            yield rows


class NamespaceState:
    """Applies the ledger's log: to the index at once, to encoder and policy whenever ``learn`` is called."""

    def __init__(
        self,
        name: str,
        namespace_id: int,
        parts: Parts,
        *,
        note_failure: Callable[[str, Exception], object],
        screen: Screen,
        limits: Limits | None = None,
        keep: bool = True,
    ) -> None:
        self.name, self.namespace_id, self._parts = name, namespace_id, parts
        self.index = parts.index(parts.embedder.dimension, name)
        self.used = time.monotonic()  # when a call asked for this state
        self.purged = False  # True after a purge, until it is known whether the namespace has its name still
        self.limits = limits
        # True if cases may expire, or if cases that were set aside have to be deleted some time.
        self._ages = (limits is not None and limits.ttl is not None) or parts.ledger.expiry.keeps_any(namespace_id)
        self.next_look = 0.0  # on the monotonic clock; no case expires before this time
        self._tidying = parts.job("tidying", namespace_id)
        self._try_again = 0.0  # on the monotonic clock; until then another process is tidying
        self.screen = screen
        self.learner = Learner(
            name,
            namespace_id,
            parts.ranker,
            self._encoder_of(parts.ranker),
            ledger=parts.ledger,
            snapshots=parts.snapshots,
            training=parts.job("training", namespace_id),
            keep=keep,
            screen=self.screen,
        )
        self.shadow: Shadow | None = None
        if parts.shadow is not None:
            self.shadow = Shadow(parts.shadow, namespace_id, self._encoder_of(parts.shadow), parts.ledger, note_failure)
        self._learning = threading.Lock()
        self._torn = False  # learning was interrupted: it begins anew, from the ledger
        # Training an encoder takes seconds, so a fork does not wait for it.
        self._calculating = calculating if parts.ranker.training is None else contextlib.nullcontext
        self._noting = threading.Lock()  # held for microseconds, over the notes below
        self._todo: list[Change] = []  # changes applied to the index, but not yet learned
        self._new_cases: list[Candidates] = []  # cases in the index, but not yet in the encoder
        self._last_key = 0  # the greatest key of the cases in the encoder or in ``_new_cases``
        self.seq = parts.ledger.head()
        for rows in self._scanned():
            self._last_key = int(rows.keys[-1])
            self.index.upsert(rows.keys, rows.vectors)
            self.encoder.retain(rows)
            if self.shadow is not None:
                self.shadow.retain(rows)
        self.learner.load(self.seq, self._changes_after)
        if (left_out := parts.ledger.cases.count(namespace_id, self._last_key, hidden=False) - self.index.count) > 0:
            unusable = f"{left_out} cases of {name!r} cannot be used: run cascade-memory data doctor --fix"
            note_failure("rows", StoreCorrupt(unusable))
        if self.shadow is not None:
            self.shadow.rebuild()
        self._draws = itertools.count(parts.ledger.insight.recalls(namespace_id))

    def _encoder_of(self, ranker: Ranker) -> PairEncoder:
        return ranker.encoder(self._parts.embedder.dimension, self.index.vectors)

    @property
    def encoder(self) -> PairEncoder:
        """The current encoder; replaced after cases were forgotten."""
        return self.learner.encoder

    @property
    def policy(self) -> Policy:
        """The current policy; replaced after outcomes were taken back."""
        return self.learner.policy

    def seed(self) -> int:
        """Return the seed of the next choice: the same sequence of recalls draws the same random numbers."""
        return self.namespace_id * 2_654_435_761 + next(self._draws)

    @property
    def bytes(self) -> int:
        """Roughly how many bytes of RAM the state takes."""
        return _EMPTY + self.index.bytes + self.index.count * _CASE

    @property
    def busy(self) -> bool:
        """True while there is something to learn, or learning is in progress."""
        return bool(self._todo or self._new_cases) or self._torn or self.learner.due or self.waiting or self._learning.locked()

    @property
    def waiting(self) -> bool:
        """True while there is more to learn than one call of ``learn`` handles."""
        return self.learner.waiting

    @property
    def rebuild_due(self) -> bool:
        """True while something still has to be learned again from scratch."""
        return self.learner.due

    def _scanned(self, until: int | None = None) -> Iterator[Candidates]:
        """Yield all stored cases in batches, oldest first; with ``until``, only up to this key."""
        return usable_cases(self._parts.ledger, self.namespace_id, self._parts.embedder.dimension, until)

    def _changes_after(self, seq: int) -> list[Change]:
        found: list[Change] = []
        while changes := self._parts.ledger.tail(seq, namespace=self.namespace_id):
            found += [change for change in changes if change.seq <= self.seq]
            seq = changes[-1].seq
        return found

    # -- following ---------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[Change]) -> None:
        """Update the index and note what there is to learn. Called by one thread at a time."""
        mine = [change for change in changes if change.namespace == self.namespace_id and change.seq > self.seq]
        self.purged = self.purged or any(change.purges for change in mine)
        if any(change.empties_namespace for change in mine):
            self._rebuild_index()
        else:
            self._add([change.ref for change in mine if change.adds_case and change.ref > self._last_key])
        removed = [change.ref for change in mine if change.takes_case]
        if removed:
            self.index.remove(removed)
        moved = [change for change in mine if change.hides_case or change.shows_case_again]
        if moved:
            self._show_or_hide(moved)
            self.screen.look_up()
        todo, seq = [change for change in mine if not change.adds_case], max(self.seq, changes[-1].seq)
        with self._noting:
            self._todo += todo
            self.seq = seq

    def _show_or_hide(self, changes: Sequence[Change]) -> None:
        """Take hidden cases out of the index, and put back those that may be shown again."""
        last = {change.ref: change.hides_case for change in changes}
        if hidden := [key for key, hides in last.items() if hides]:
            self.index.remove(hidden)
        for key in (key for key, hides in last.items() if not hides):
            rows = self._parts.ledger.scan(self.namespace_id, key - 1, 1, until=key)
            if len(rows):
                self.index.upsert(rows.keys, rows.vectors)
                with self._noting:
                    self._last_key = max(self._last_key, key)  # of cases that were hidden when this state was loaded

    def _add(self, keys: list[int]) -> None:
        if keys:
            rows = self._parts.ledger.scan(self.namespace_id, min(keys) - 1, len(keys), until=max(keys))
            if len(rows):
                self.index.upsert(rows.keys, rows.vectors)
            new, last_key = [rows] if len(rows) else [], max(keys)
            with self._noting:  # so that an encoder rebuilt now gets each new case exactly once
                self._new_cases += new
                self._last_key = last_key

    def rebuild(self) -> None:
        """Read all cases again, and learn everything again at the next ``learn``. Called by one thread at a time."""
        self._rebuild_index()
        self.learner.rebuild_soon()
        if self.shadow is not None:
            self.shadow.rebuild()

    def _rebuild_index(self) -> None:
        """Rebuild the index after the namespace was emptied, from the cases that were added since."""
        self.index.clear()
        last_key = self._last_key
        for rows in self._scanned():
            self.index.upsert(rows.keys, rows.vectors)
            last_key = max(last_key, int(rows.keys[-1]))
        with self._noting:
            self._last_key, self._new_cases = last_key, []

    # -- learning ----------------------------------------------------------------------------------------------------

    def learn(self, *, outcomes: bool = True) -> bool:
        """Update encoder and policy; return whether more is left to learn than one call handles.

        Without ``outcomes``, only forget what has to be forgotten.
        """
        if not self.busy:
            return False
        with self._learning, self._calculating():
            was_torn = self._torn
            try:
                return self._learn(outcomes=outcomes)
            except (CascadeError, OSError):
                raise
            except BaseException as error:  # an interrupt, above all: nobody knows how much of it was learned
                self._torn = not (was_torn and isinstance(error, Exception))  # what fails again is an error of the ranker
                raise

    def _learn(self, *, outcomes: bool) -> bool:
        if self._torn:
            self.learner.rebuild_soon()
            if self.shadow is not None:
                self.shadow.rebuild()
            self._torn = False
        with self._noting:
            todo, self._todo = self._todo, []
            new, self._new_cases = self._new_cases, []
            seq, last_key = self.seq, self._last_key
        if not outcomes:
            todo = [change for change in todo if change.takes_case or change.changes_encoder]
        try:
            return self.learner.learn(todo, new, lambda: self._scanned(until=last_key), seq=seq, cases=self.index.count)
        finally:
            if self.shadow is not None:
                self.shadow.learn(todo, new, self._scanned(until=last_key))

    def rebuild_policy(self) -> None:
        """Learn again from the ledger, because the state shared between namespaces has changed."""
        with self._learning, self._calculating():
            self.learner.rebuild()

    def refit(self) -> None:
        """Learn everything again from the ledger; encoders start from their pretrained weights."""
        with self._learning:
            self.learner.refit()

    def close(self, *, thorough: bool = True) -> None:
        """Save what was learned; unless ``thorough``, only if learning it again would take long."""
        with self._learning:
            self.learner.close(thorough=thorough)
        self._tidying.release()

    def stale(self) -> tuple[str, ...]:
        """Describe the learned data that still contain something forgotten and cannot be cleaned now."""
        stale = self.learner.stale()
        if not stale and self._parts.ranker.training is not None and self._learning.locked():
            return (f"the encoder of {self.name!r}, which is being trained right now: memory.data.refit() trains it again",)
        return stale

    # -- limits ------------------------------------------------------------------------------------------------------

    @property
    def overdue(self) -> bool:
        """True if there are more cases than allowed, or perhaps expired ones."""
        if time.monotonic() < self._try_again:
            return False
        most = None if self.limits is None else self.limits.max_cases
        too_many = most is not None and self.index.count > most
        return too_many or (self._ages and time.monotonic() >= self.next_look)

    def tidy(self) -> None:
        """Expire and evict cases as the limits demand; the log tells every process, and this state, what was removed."""
        if not self._tidying.try_acquire():
            self._try_again = time.monotonic() + _ELSEWHERE
            return
        with self._tidying.held():
            self._tidy()

    def _tidy(self) -> None:
        limits, ledger = self.limits, self._parts.ledger
        if self._ages:
            self._expire(None if limits is None else limits.ttl)
        if limits is None:
            return
        most = limits.max_cases
        if most is not None and ledger.cases.count(self.namespace_id, hidden=False) > most:
            records = ledger.cases.records(self.namespace_id)
            going = surplus(records, max_cases=most, ledger=ledger, namespace=self.namespace_id, window=WINDOW)
            for start in range(0, len(going), _EVICTED_AT_ONCE):  # in parts, so that others can write in between
                ledger.cases.evict(going[start : start + _EVICTED_AT_ONCE], aside=most, ttl=limits.ttl)
            self._ages = self._ages or bool(going)
            if not going:  # more are pinned than there is room for
                self._try_again = time.monotonic() + _ELSEWHERE

    def _expire(self, ttl: float | None) -> None:
        """Set aside cases that were not verified within the ttl. A wrong clock may hide cases, but deletes none."""
        expired = deleted = 0
        while True:
            looked = self._parts.ledger.expiry.expire(self.namespace_id, ttl)
            expired, deleted = expired + looked.expired, deleted + looked.deleted
            if not (looked.expired or looked.deleted):
                break
        self.next_look = time.monotonic() + looked.look_again
        if expired:
            _log.info(
                "%d cases of namespace %r expired: not verified for %s seconds; bring_back() can restore them for some days",
                expired,
                self.name,
                ttl,
            )
        if deleted:
            _log.info("%d set-aside cases of namespace %r were deleted: nobody brought them back in time", deleted, self.name)
