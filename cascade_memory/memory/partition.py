"""All that is known of one namespace: its index, its encoder, its policy. Nothing of it is shared with another."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator, Sequence

from cascade_memory.cycle.learn import WINDOW, learn
from cascade_memory.cycle.retain import surplus
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.records import CASE_ADDED, CASE_REMOVED, EVICTED, FORGOTTEN, Change
from cascade_memory.memory.parts import Parts
from cascade_memory.ports.pair_encoder import Candidates
from cascade_memory.snapshots import Snapshot

_SCAN = 4_096  # cases read at once
_SNAPSHOT_EVERY = 256  # outcomes
_COMPACT_EVERY = 64  # outcomes
_COMPACT_BATCHES = 4  # of as many episodes each: a memory that was never compacted catches up
_log = logging.getLogger(__name__)


class Partition:
    """Follows the ledger's log: the index at once, encoder and policy whenever ``learn`` is called."""

    def __init__(self, name: str, number: int, parts: Parts) -> None:
        self.name, self.number, self._parts = name, number, parts
        self.index = parts.index(parts.embedder.dimension, name)
        self.encoder = parts.ranker.encoder(parts.embedder.dimension, self.index.vectors)
        self.policy = parts.ranker.policy()
        self._learning = threading.Lock()
        self._noting = threading.Lock()  # held for microseconds, over what is noted and up to where
        self._todo: list[Change] = []  # applied to the index, not yet learned
        self._new_cases: list[Candidates] = []  # in the index, not yet in the encoder
        self._last_key = 0
        self.seq = parts.ledger.head()
        self._learned_seq = self.seq
        self._since_snapshot = self._since_compaction = self._evicted = 0
        self.limits: Limits | None = None
        self._next_expiry = 0.0  # nothing is too old before
        self._load()
        self._draws = itertools.count(parts.ledger.recalls(number))

    def seed(self) -> tuple[int, int]:
        """Return the seed of the next choice: the same stream of recalls draws the same numbers."""
        return self.number, next(self._draws)

    @property
    def busy(self) -> bool:
        """True while there is something to learn, or it is being learned."""
        return bool(self._todo or self._new_cases) or self._learning.locked()

    # -- loading -----------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        self._load_cases()
        snapshot = self._parts.snapshots.latest(
            self.number, policy=self.policy.name, encoder=self.encoder.identity, until=self.seq
        )
        later = self._changes_after(snapshot.seq) if snapshot is not None else []
        if snapshot is None or any(change.kind == FORGOTTEN for change in later):
            self.policy.rebuild(self._parts.ledger.history(self.number, WINDOW))
            return
        try:
            self.policy.load_state_dict(snapshot.state)
        except Exception as error:  # noqa: BLE001 - of another version, say; the ledger knows everything that it knew
            _log.warning("the snapshot of namespace %r does not fit (%r); learning afresh from the ledger", self.name, error)
            self.policy.rebuild(self._parts.ledger.history(self.number, WINDOW))
            return
        learn(later, ledger=self._parts.ledger, policy=self.policy, namespace=self.number)
        self._since_snapshot = len(later)

    def _load_cases(self) -> None:
        for rows in self._scanned():
            self._last_key = int(rows.keys[-1])
            self.index.upsert(rows.keys, rows.vectors)
            self.encoder.retain(rows)

    def _scanned(self, until: int | None = None) -> Iterator[Candidates]:
        """Yield all stored cases, in order of age."""
        after = 0
        while len(rows := self._parts.ledger.scan(self.number, after, _SCAN, until=until)):
            after = int(rows.keys[-1])
            yield rows

    def _changes_after(self, seq: int) -> list[Change]:
        found: list[Change] = []
        while True:
            changes = self._parts.ledger.tail(seq)
            changes = [change for change in changes if change.seq <= self.seq]
            if not changes:
                return found
            found += [change for change in changes if change.namespace == self.number]
            seq = changes[-1].seq

    # -- following ---------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index up to date and note what there is to learn. Called by one thread at a time."""
        changes = [change for change in changes if change.seq > self.seq]
        if not changes:
            return
        if any(change.kind == FORGOTTEN and not change.ref for change in changes):
            self._start_over()
        else:
            self._add([change.ref for change in changes if change.kind == CASE_ADDED and change.ref > self._last_key])
        removed = [change.ref for change in changes if change.kind in (CASE_REMOVED, EVICTED)]
        if removed:
            self.index.remove(removed)
        with self._noting:
            self._evicted += sum(change.kind == EVICTED for change in changes)
            self._todo += [change for change in changes if change.kind not in (CASE_ADDED, EVICTED)]
            self.seq = changes[-1].seq

    def _add(self, keys: list[int]) -> None:
        if keys:
            rows = self._parts.ledger.scan(self.number, min(keys) - 1, len(keys), until=max(keys))
            self._last_key = max(keys)
            if len(rows):
                self.index.upsert(rows.keys, rows.vectors)
                with self._noting:
                    self._new_cases.append(rows)

    def _start_over(self) -> None:
        """The namespace was emptied: what stands in it now came afterwards."""
        self.index.clear()
        with self._noting:
            self._new_cases = []
        for rows in self._scanned():
            self.index.upsert(rows.keys, rows.vectors)
            self._last_key = max(self._last_key, int(rows.keys[-1]))

    # -- learning ----------------------------------------------------------------------------------------------------

    def learn(self, *, outcomes: bool = True) -> None:
        """Bring encoder and policy up to date; without ``outcomes`` only forget what is to be forgotten."""
        with self._learning:
            with self._noting:
                todo, self._todo = self._todo, []
                new, self._new_cases = self._new_cases, []
                seq = self.seq
            if not outcomes:
                todo = [change for change in todo if change.kind in (CASE_REMOVED, FORGOTTEN)]
            forgotten = any(change.kind in (CASE_REMOVED, FORGOTTEN) for change in todo)
            # What was evicted may live on in a statistic for a while: it was true. Only its weight is kept in bounds.
            if forgotten or self._evicted > max(self.index.count, _SCAN):
                self._evicted = 0
                self._rebuild_encoder()
            else:
                for rows in new:
                    self.encoder.retain(rows)
            rebuilt = learn(todo, ledger=self._parts.ledger, policy=self.policy, namespace=self.number)
            self._learned_seq = seq
            self._since_snapshot += len(todo)
            self._since_compaction += len(todo)
            if rebuilt or forgotten:
                self._parts.snapshots.drop(self.number)
            if rebuilt or self._since_snapshot >= _SNAPSHOT_EVERY:
                self.save()
            if self._since_compaction >= _COMPACT_EVERY:
                self._compact()

    def _compact(self) -> None:
        self._since_compaction = 0
        for _ in range(_COMPACT_BATCHES):
            if self._parts.ledger.compact(self.number, WINDOW, _COMPACT_EVERY) < _COMPACT_EVERY:
                return

    # -- limits ------------------------------------------------------------------------------------------------------

    @property
    def overdue(self) -> bool:
        """True when there are more or older cases than there may be."""
        limits = self.limits
        if limits is None:
            return False
        too_many = limits.max_cases is not None and self.index.count > limits.max_cases
        return too_many or (limits.ttl is not None and time.time() >= self._next_expiry)

    def verified_after(self) -> float:
        """Return the moment since which a case must have been verified to be recalled."""
        return 0.0 if self.limits is None or self.limits.ttl is None else time.time() - self.limits.ttl

    def tidy(self) -> None:
        """Let go of what is too old or too much; the log tells everybody, this partition included."""
        limits, ledger = self.limits, self._parts.ledger
        if limits is None:
            return
        if limits.ttl is not None:
            ledger.evict(ledger.verified_before(self.number, time.time() - limits.ttl))
            oldest = ledger.oldest_verified(self.number)
            self._next_expiry = (time.time() if oldest is None else oldest) + limits.ttl
        if limits.max_cases is not None and ledger.case_count(self.number) > limits.max_cases:
            records = ledger.case_records(self.number)
            ledger.evict(surplus(records, max_cases=limits.max_cases, ledger=ledger, namespace=self.number, window=WINDOW))

    def stale(self) -> tuple[str, ...]:
        """Say what forgetting cannot reach: weights that were fitted to more than can be refitted here."""
        fitted = getattr(self.encoder, "fitted_outcomes", 0)
        if not fitted:
            return ()
        return (f"the weights of {self.encoder.identity} in {self.name!r}, fitted to {fitted:,} outcomes: fit them again",)

    def _rebuild_encoder(self) -> None:
        """Count all remaining cases afresh: what was forgotten must not live on in a statistic."""
        self.encoder.reset()
        for rows in self._scanned(until=self._last_key):
            self.encoder.retain(rows)

    def save(self) -> None:
        """Write a snapshot of the policy."""
        if self._since_snapshot:
            self._parts.snapshots.save(
                Snapshot(
                    namespace=self.number,
                    seq=self._learned_seq,
                    policy=self.policy.name,
                    encoder=self.encoder.identity,
                    state=self.policy.state_dict(),
                )
            )
            self._parts.ledger.note_event(
                "trained",
                self.number,
                {"policy": self.policy.name, "version": self.policy.version, "seq": self._learned_seq},
            )
            self._since_snapshot = 0
