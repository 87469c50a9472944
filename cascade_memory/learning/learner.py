"""What is learned in one namespace: encoder and policy, replaced as a whole whenever they are made anew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from cascade_memory.cycle.learn import WINDOW, needs_rebuild
from cascade_memory.domain.records import Change
from cascade_memory.learning.ranker import Ranker
from cascade_memory.learning.trainer import trainer_for
from cascade_memory.ports.ledger import Ledger
from cascade_memory.ports.pair_encoder import Candidates, PairEncoder
from cascade_memory.ports.policy import Feedback, Policy
from cascade_memory.snapshots import Snapshot, SnapshotStore

_SNAPSHOT_EVERY = 256  # outcomes
_COMPACT_EVERY = 64  # outcomes
_COMPACT_BATCHES = 4  # of as many episodes each: a memory that was never compacted catches up
_FORGET_EVICTED = 4_096  # cases: what was evicted may live on in a statistic for so long; it was true
_log = logging.getLogger(__name__)


class Learner:
    """Learns from the log of one namespace, one thread at a time. Recall reads ``encoder`` and ``policy`` whenever it likes."""

    def __init__(
        self,
        name: str,
        namespace_id: int,
        ranker: Ranker,
        encoder: PairEncoder,
        *,
        ledger: Ledger,
        snapshots: SnapshotStore,
        keep: bool,
    ) -> None:
        self._name, self._namespace_id, self._ledger, self._snapshots = name, namespace_id, ledger, snapshots
        self._trainer = trainer_for(ranker, encoder, ledger)
        self._known = 0  # the last outcome that the policy was made from as a whole: up to here the log has no news
        self._seq = 0
        self._since_snapshot = self._since_compaction = self._evicted = 0
        self._keep = keep  # snapshots: not of a process that leaves outcomes out
        self._rebuild_due = self._encoder_rebuild_due = False  # true until it has succeeded

    @property
    def now(self) -> tuple[PairEncoder, Policy]:
        """Encoder and policy that fit each other."""
        return self._trainer.now

    @property
    def encoder(self) -> PairEncoder:
        """The encoder as it is now."""
        return self.now[0]

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self.now[1]

    # -- starting ----------------------------------------------------------------------------------------------------

    def load(self, seq: int, changes_after: Callable[[int], list[Change]]) -> None:
        """Take over what was learned up to a line of the log: from a snapshot and what came after it, or from the ledger.

        Where that fails, the namespace is served as if nothing had been learned, and learning afresh is tried again.
        """
        self._seq = seq
        try:
            self._load(seq, changes_after)
        except Exception as error:  # noqa: BLE001 - recalls need the cases, and can do without what was learned
            _log.warning("what was learned in namespace %r could not be loaded (%r)", self._name, error)
            self._rebuild_due = True

    def _load(self, seq: int, changes_after: Callable[[int], list[Change]]) -> None:
        snapshot = self._usable(seq)
        later = changes_after(snapshot.seq) if snapshot is not None else []
        outcomes = sum(change.settles for change in later)
        forgotten = any(change.forgets_outcomes for change in later)
        if forgotten:
            self._snapshots.drop(self._namespace_id)
        if snapshot is None or outcomes > WINDOW or forgotten:
            self._refit()
            return
        self._since_snapshot, self._known = len(later), snapshot.known
        if not needs_rebuild(later):
            self._trainer.expect(self._news(later))
        elif self._trainer.takes_long:
            self._rebuild_due = True  # whoever opens a namespace does not wait for it
        else:
            self._rebuild()

    def _usable(self, seq: int) -> Snapshot | None:
        """Take over the newest snapshot that fits, and return it; those that do not go."""
        name, encoder = self.policy.name, self.encoder.identity
        last = self._ledger.lessons.last_outcome()
        while (snapshot := self._snapshots.latest(self._namespace_id, policy=name, encoder=encoder, until=seq)) is not None:
            try:
                if snapshot.known > last:
                    raise ValueError("it knows of outcomes that there never were")  # noqa: TRY301 - handled like all the rest
                self._trainer.take(snapshot.state, snapshot.weights)
            except Exception as error:  # noqa: BLE001 - of another version, say; the ledger knows everything that it knew
                _log.warning("a snapshot of namespace %r does not fit (%r); taking an older one", self._name, error)
                self._snapshots.remove(snapshot)
                seq = snapshot.seq - 1  # also where it cannot be deleted
            else:
                return snapshot
        return None

    def _refit(self) -> None:
        """Learn everything from the beginning: from the bounded window of what the ledger has."""
        self._known = self._ledger.lessons.last_outcome()
        history = self._history()
        self._trainer.refit(history)
        self._since_snapshot += len(history) if self.waiting else 0

    def _history(self) -> list[Feedback]:
        return self._ledger.lessons.history(self._namespace_id, WINDOW, until=self._known)

    def _rebuild(self) -> None:
        """Learn again what the ledger still has, since something was taken back. Recalls go on as before meanwhile."""
        self._rebuild_due = True
        self._known = self._ledger.lessons.last_outcome()
        self._trainer.rebuild(self._history())
        self._rebuild_due = False

    def refit(self) -> None:
        """Learn everything again, the encoder from its pretrained weights on."""
        self._snapshots.drop(self._namespace_id)
        self._refit()
        self._since_snapshot += 1

    # -- learning ----------------------------------------------------------------------------------------------------

    def learn(
        self,
        todo: Sequence[Change],
        new: Sequence[Candidates],
        remaining: Callable[[], Iterable[Candidates]],
        *,
        seq: int,
        cases: int,
    ) -> None:
        """Bring encoder and policy up to date with lines of the log and with new cases.

        ``remaining`` yields all cases that are left, ``cases`` of them, for an encoder that must forget some.
        """
        self._evicted += sum(change.makes_room for change in todo)
        forgotten = any(change.forgets for change in todo)
        self._encoder_rebuild_due = self._encoder_rebuild_due or forgotten or self._evicted > max(cases, _FORGET_EVICTED)
        self._rebuild_due = self._rebuild_due or needs_rebuild(todo)
        if self._rebuild_due or forgotten:
            self._snapshots.drop(self._namespace_id)  # they know what must be forgotten
        if self._encoder_rebuild_due:
            self._rebuild_encoder(remaining())
        else:
            for rows in new:
                self.encoder.retain(rows)
        self._since_snapshot += len(todo)
        self._since_compaction += len(todo)
        rebuilds = self._rebuild_due
        if rebuilds:
            self._rebuild()
            self._seq = seq
        else:
            try:
                self._trainer.learn(self._news(todo))
            finally:  # what failed has been learned as far as it could be, or waits
                waiting = self._trainer.waiting_since
                self._seq = seq if waiting is None else max(waiting - 1, 0)
        if rebuilds or self._since_snapshot >= _SNAPSHOT_EVERY:
            self.save()
        if self._since_compaction >= _COMPACT_EVERY:
            self._compact()

    def _news(self, changes: Sequence[Change]) -> list[Change]:
        return [change for change in changes if not change.settles or change.ref > self._known]

    def rebuild_soon(self) -> None:
        """Count all cases anew, and learn all outcomes again, with the next lessons."""
        self._encoder_rebuild_due = self._rebuild_due = True

    def _rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Count all remaining cases in a new encoder: what was forgotten must not live on in a statistic."""
        self._trainer.rebuild_encoder(remaining)
        self._evicted, self._encoder_rebuild_due = 0, False

    @property
    def due(self) -> bool:
        """True while something that has to be learned afresh has not been."""
        return self._rebuild_due or self._encoder_rebuild_due

    @property
    def waiting(self) -> bool:
        """True while some of what was handed to ``learn`` is not learned yet: training takes its time."""
        return self._trainer.waiting_since is not None

    def rebuild(self) -> None:
        """Learn afresh, since what this leans on has changed."""
        self._rebuild_due = True
        self._rebuild()
        self._since_snapshot += 1

    def _compact(self) -> None:
        self._since_compaction = 0
        for _ in range(_COMPACT_BATCHES):
            if self._ledger.lessons.compact(self._namespace_id, WINDOW, _COMPACT_EVERY) < _COMPACT_EVERY:
                return

    def save(self) -> None:
        """Write a snapshot of the policy, if it learned anything since the last one.

        Not if something was taken back meanwhile that this process has not read of: it must not come back.
        """
        repeating = self._trainer.waiting_since == 0
        may = self._keep and not repeating and not self._ledger.lessons.took_back(self._namespace_id, self._seq)
        if self._since_snapshot and may:
            policy = self.policy
            state, weights = self._trainer.state()
            about = {"policy": policy.name, "version": policy.version, "seq": self._seq}
            # Before the file: into a folder that has another ledger by now it must not go.
            self._ledger.facts.note_event("trained", self._namespace_id, about)
            self._snapshots.save(
                Snapshot(
                    namespace=self._namespace_id,
                    seq=self._seq,
                    known=self._known,
                    policy=policy.name,
                    encoder=self.encoder.identity,
                    state=state,
                ),
                weights,
            )
            self._since_snapshot = 0

    def close(self) -> None:
        """Save, and compact what a short session has left."""
        self.save()
        self._compact()

    def stale(self) -> tuple[str, ...]:
        """Say what forgetting cannot reach: weights that were fitted to more than can be refitted here."""
        fitted = getattr(self.encoder, "fitted_outcomes", 0)
        if not fitted:
            return ()
        weights = f"the weights of {self.encoder.identity} in {self._name!r}, fitted to {fitted:,} outcomes"
        return (f"{weights}: memory.refit() fits them again",)
