"""All that is known of one namespace: its index, and what was learned. Nothing of it is shared with another."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from cascade_memory.cycle.learn import WINDOW
from cascade_memory.cycle.retain import surplus
from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.records import Change
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import StoreCorrupt
from cascade_memory.learning.learner import Learner
from cascade_memory.learning.ranker import Ranker
from cascade_memory.learning.shadow import Shadow
from cascade_memory.ports.pair_encoder import Candidates, PairEncoder
from cascade_memory.ports.policy import Policy

_SCAN = 4_096  # cases read at once
_EVICTED_AT_ONCE = 200  # in one transaction
_log = logging.getLogger(__name__)


class NamespaceState:
    """Follows the ledger's log: the index at once, encoder and policy whenever ``learn`` is called."""

    def __init__(
        self,
        name: str,
        namespace_id: int,
        parts: Parts,
        *,
        note_failure: Callable[[str, Exception], object],
        limits: Limits | None = None,
        keep: bool = True,
    ) -> None:
        self.name, self.namespace_id, self._parts = name, namespace_id, parts
        self.index = parts.index(parts.embedder.dimension, name)
        self.limits = limits
        # There may be cases that go, or some that went and whose time is over, if only by an earlier limit.
        self._ages = (limits is not None and limits.ttl is not None) or bool(parts.ledger.expiry.expired(namespace_id))
        self.next_look = 0.0  # by the monotonic clock; nothing is too old before
        self.learner = Learner(
            name,
            namespace_id,
            parts.ranker,
            self._encoder_of(parts.ranker),
            ledger=parts.ledger,
            snapshots=parts.snapshots,
            keep=keep,
        )
        self.shadow: Shadow | None = None
        if parts.shadow is not None:
            self.shadow = Shadow(parts.shadow, namespace_id, self._encoder_of(parts.shadow), parts.ledger, note_failure)
        self._learning = threading.Lock()
        # Training an encoder takes seconds, and a thread of its own kind: a fork does not wait for it.
        self._calculating = calculating if parts.ranker.training is None else contextlib.nullcontext
        self._noting = threading.Lock()  # held for microseconds, over what is noted and up to where
        self._todo: list[Change] = []  # applied to the index, not yet learned
        self._new_cases: list[Candidates] = []  # in the index, not yet in the encoder
        self._last_key = 0  # of the cases that are in the encoder or in ``_new_cases``
        self.seq = parts.ledger.head()
        for rows in self._scanned():
            self._last_key = int(rows.keys[-1])
            self.index.upsert(rows.keys, rows.vectors)
            self.encoder.retain(rows)
            if self.shadow is not None:
                self.shadow.retain(rows)
        self.learner.load(self.seq, self._changes_after)
        if (left_out := parts.ledger.cases.count(namespace_id, self._last_key) - self.index.count) > 0:
            note_failure("rows", StoreCorrupt(f"{left_out} cases of {name!r} cannot be used: run cascade-memory doctor --fix"))
        if self.shadow is not None:
            self.shadow.rebuild()
        self._draws = itertools.count(parts.ledger.insight.recalls(namespace_id))

    def _encoder_of(self, ranker: Ranker) -> PairEncoder:
        return ranker.encoder(self._parts.embedder.dimension, self.index.vectors)

    @property
    def encoder(self) -> PairEncoder:
        """The encoder as it is now; another one after cases were forgotten."""
        return self.learner.encoder

    @property
    def policy(self) -> Policy:
        """The policy as it is now; another one after outcomes were taken back."""
        return self.learner.policy

    def seed(self) -> tuple[int, int]:
        """Return the seed of the next choice: the same stream of recalls draws the same numbers."""
        return self.namespace_id, next(self._draws)

    @property
    def busy(self) -> bool:
        """True while there is something to learn, or it is being learned."""
        return bool(self._todo or self._new_cases) or self.learner.due or self.waiting or self._learning.locked()

    @property
    def waiting(self) -> bool:
        """True while there is more to learn than one call of ``learn`` does."""
        return self.learner.waiting

    @property
    def rebuild_due(self) -> bool:
        """True while something that has to be learned afresh has not been."""
        return self.learner.due

    def _scanned(self, until: int | None = None) -> Iterator[Candidates]:
        """Yield all stored cases, in order of age."""
        after = 0
        while len(rows := self._parts.ledger.scan(self.namespace_id, after, _SCAN, until=until)):
            after = int(rows.keys[-1])
            if rows.vectors.shape[1] == self._parts.embedder.dimension:  # else of an edited ledger: the doctor says so
                yield rows

    def _changes_after(self, seq: int) -> list[Change]:
        found: list[Change] = []
        while True:
            changes = self._parts.ledger.tail(seq)
            changes = [change for change in changes if change.seq <= self.seq]
            if not changes:
                return found
            found += [change for change in changes if change.namespace == self.namespace_id]
            seq = changes[-1].seq

    # -- following ---------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index up to date and note what there is to learn. Called by one thread at a time."""
        mine = [change for change in changes if change.namespace == self.namespace_id and change.seq > self.seq]
        if any(change.empties_namespace for change in mine):
            self._rebuild_index()
        else:
            self._add([change.ref for change in mine if change.adds_case and change.ref > self._last_key])
        removed = [change.ref for change in mine if change.takes_case]
        if removed:
            self.index.remove(removed)
        with self._noting:
            self._todo += [change for change in mine if not change.adds_case]
            self.seq = max(self.seq, changes[-1].seq)

    def _add(self, keys: list[int]) -> None:
        if keys:
            rows = self._parts.ledger.scan(self.namespace_id, min(keys) - 1, len(keys), until=max(keys))
            if len(rows):
                self.index.upsert(rows.keys, rows.vectors)
            with self._noting:  # an encoder that is made afresh now counts the new cases either there or here
                self._last_key = max(keys)
                if len(rows):
                    self._new_cases.append(rows)

    def rebuild(self) -> None:
        """Read all cases again, and learn again with the next call of ``learn``. Called by one thread at a time."""
        self._rebuild_index()
        self.learner.rebuild_soon()
        if self.shadow is not None:
            self.shadow.rebuild()

    def _rebuild_index(self) -> None:
        """The namespace was emptied: what stands in it now came afterwards."""
        self.index.clear()
        last_key = self._last_key
        for rows in self._scanned():
            self.index.upsert(rows.keys, rows.vectors)
            last_key = max(last_key, int(rows.keys[-1]))
        with self._noting:
            self._last_key, self._new_cases = last_key, []

    # -- learning ----------------------------------------------------------------------------------------------------

    def learn(self, *, outcomes: bool = True) -> bool:
        """Bring encoder and policy up to date, and return whether there is more than one call does.

        Without ``outcomes`` only forget what is to be forgotten.
        """
        with self._learning, self._calculating():
            with self._noting:
                todo, self._todo = self._todo, []
                new, self._new_cases = self._new_cases, []
                seq, last_key = self.seq, self._last_key
            if not outcomes:
                todo = [change for change in todo if change.takes_case or change.forgets]
            try:
                self.learner.learn(todo, new, lambda: self._scanned(until=last_key), seq=seq, cases=self.index.count)
            finally:
                if self.shadow is not None:
                    self.shadow.learn(todo, new, self._scanned(until=last_key))
        return self.waiting

    def rebuild_policy(self) -> None:
        """Learn again from the ledger: what is shared between namespaces has changed."""
        with self._learning, self._calculating():
            self.learner.rebuild()

    def refit(self) -> None:
        """Learn everything again from the ledger, beginning with pretrained weights."""
        with self._learning:
            self.learner.refit()

    def close(self) -> None:
        """Write down what was learned."""
        with self._learning:
            self.learner.close()

    def stale(self) -> tuple[str, ...]:
        """Say what forgetting cannot reach."""
        stale = self.learner.stale()
        if not stale and self._parts.ranker.training is not None and self._learning.locked():
            return (f"the encoder of {self.name!r}, which is being trained at this moment: memory.refit() fits it again",)
        return stale

    # -- limits ------------------------------------------------------------------------------------------------------

    @property
    def overdue(self) -> bool:
        """True when there are more cases than there may be, or perhaps older ones."""
        most = None if self.limits is None else self.limits.max_cases
        too_many = most is not None and self.index.count > most
        return too_many or (self._ages and time.monotonic() >= self.next_look)

    def verified_after(self) -> float:
        """Return the moment since which a case must have been verified to be recalled."""
        return 0.0 if self.limits is None or self.limits.ttl is None else time.time() - self.limits.ttl

    def tidy(self) -> None:
        """Let go of what is too old or too much; the log tells everybody, this state included."""
        limits, ledger = self.limits, self._parts.ledger
        if self._ages:
            self._expire(None if limits is None else limits.ttl)
        most = None if limits is None else limits.max_cases
        if most is not None and ledger.cases.count(self.namespace_id) > most:
            records = ledger.cases.records(self.namespace_id)
            going = surplus(records, max_cases=most, ledger=ledger, namespace=self.namespace_id, window=WINDOW)
            for start in range(0, len(going), _EVICTED_AT_ONCE):  # others write in between
                ledger.cases.evict(going[start : start + _EVICTED_AT_ONCE])

    def _expire(self, ttl: float | None) -> None:
        """Set aside what was not verified for so long by running time: a clock that is ahead hides cases, and deletes none."""
        expired = deleted = 0
        while True:
            looked = self._parts.ledger.expiry.expire(self.namespace_id, ttl)
            expired, deleted = expired + looked.expired, deleted + looked.deleted
            if not (looked.expired or looked.deleted):
                break
        self.next_look = time.monotonic() + looked.look_again
        if expired:
            _log.info(
                "%d cases of namespace %r expired: not verified for %s seconds; bring_back() returns them for a while",
                expired,
                self.name,
                ttl,
            )
        if deleted:
            _log.info("%d expired cases of namespace %r are deleted: nobody brought them back", deleted, self.name)
