"""The learner of one namespace: it keeps the encoder and the policy up to date with the ledger's log."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cascade_memory.cycle.learn import WINDOW, needs_rebuild
from cascade_memory.domain.display import counted
from cascade_memory.domain.records import Change
from cascade_memory.learning.columns import columns_of
from cascade_memory.learning.ranker import Ranker
from cascade_memory.learning.screen import Screen
from cascade_memory.learning.trainer import trainer_for
from cascade_memory.ports.encoders import Candidates, PairEncoder
from cascade_memory.ports.lock import Lease
from cascade_memory.ports.policy import Choice, Feedback, Policy, Slate
from cascade_memory.ports.snapshots import Snapshot, Snapshots
from cascade_memory.redaction.saying import log_of

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_SNAPSHOT_EVERY = 256  # outcomes
_WORTH_SAVING = 16  # outcomes; learning fewer again from the ledger takes about as long as reading a snapshot
_COMPACT_EVERY = 64  # outcomes
_COMPACT_BATCHES = 4  # of _COMPACT_EVERY episodes each, so that a memory that was never compacted catches up
_FORGET_EVICTED = 4_096  # evicted cases after which the encoder's statistics are counted again; until then they stay valid
_log = log_of(__name__)


class Learner:
    """Learns from the log of one namespace, one thread at a time. Recalls may read ``encoder`` and ``policy`` at any time."""

    def __init__(
        self,
        name: str,
        namespace_id: int,
        ranker: Ranker,
        encoder: PairEncoder,
        *,
        ledger: Ledger,
        snapshots: Snapshots,
        training: Lease,
        keep: bool,
        screen: Screen,
    ) -> None:
        self._name, self._namespace_id, self._ledger, self._snapshots = name, namespace_id, ledger, snapshots
        columns = columns_of(ranker, encoder)
        self.identity = columns.identity  # of the encoder, and of all that take its place
        self._trainer = trainer_for(ranker, encoder, columns, ledger)
        self._screen = screen
        self._training = None if ranker.training is None else training  # what is quick, every process learns for itself
        self._borrows = False  # another process trains, and this one uses its snapshots
        self._known = 0  # the last outcome in the policy's last rebuild: the policy has learned all outcomes up to it
        self._seq = 0
        self._since_snapshot = self._since_compaction = self._evicted = 0
        self._unsaved = 0  # changes that would have to be learned again if this were loaded again
        self._keep = keep  # whether to write snapshots: a process that does not learn from all outcomes must not
        self._rebuild_due = self._encoder_rebuild_due = False  # once set, they stay true until a rebuild has succeeded

    @property
    def now(self) -> tuple[PairEncoder, Policy]:
        """The present encoder and policy, which belong together."""
        return self._trainer.now

    @property
    def encoder(self) -> PairEncoder:
        """The present encoder."""
        return self.now[0]

    @property
    def policy(self) -> Policy:
        """The present policy."""
        return self.now[1]

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Tell the policy of a choice that was written down under a key: its reward is still to come."""
        self.policy.expect(key, slate, choice)

    # -- starting ----------------------------------------------------------------------------------------------------

    def load(self, seq: int, changes_after: Callable[[int], list[Change]]) -> None:
        """Restore the learned state up to an entry of the log: from a snapshot and later outcomes, or from the ledger alone.

        If this fails, recalls are served by an untrained ranker, and a rebuild is tried again later.
        """
        self._seq = seq
        try:
            self._load(seq, changes_after)
        except Exception as error:  # noqa: BLE001 - recalls work without learned state
            _log.warning("the learned state of namespace %r could not be loaded (%r)", self._name, error)
            self._rebuild_due = True

    def _load(self, seq: int, changes_after: Callable[[int], list[Change]]) -> None:
        snapshot = self._usable(seq)
        later = changes_after(snapshot.seq) if snapshot is not None else []
        outcomes = sum(change.settles for change in later)
        forgotten = any(change.forgets for change in later)
        if forgotten:
            self._snapshots.drop(self._namespace_id)
        if snapshot is None or outcomes > WINDOW or forgotten:
            self._refit()
            return
        self._since_snapshot, self._known = len(later), snapshot.known
        # Somebody may have decided about an actor since: what its outcomes taught is in the snapshot, or is missing there.
        decided = self._screen.active and any(change.hides_case or change.shows_case_again for change in later)
        if self._screen.active:
            self._screen.rebuild(self._last_before(later))
        self._unsaved = len(later)
        if not (needs_rebuild(later) or decided):
            self._trainer.expect(self._news(later))
        elif self._trainer.takes_long:
            self._rebuild_due = True  # opening a namespace must not wait for it
        else:
            self._rebuild()

    def _last_before(self, changes: Sequence[Change]) -> int:
        """Return the last outcome before some changes."""
        settled = [change.ref for change in changes if change.settles and change.ref > self._known]
        return min(settled) - 1 if settled else self._ledger.lessons.last_outcome()

    def _usable(self, seq: int, after: int = -1) -> Snapshot | None:
        """Load and return the newest snapshot that is valid here; delete those that are not."""
        name, encoder = self.policy.name, self.identity
        last = self._ledger.lessons.last_outcome()
        find = functools.partial(self._snapshots.latest, self._namespace_id, policy=name, encoder=encoder, after=after)
        while (snapshot := find(until=seq)) is not None:
            try:
                if snapshot.known > last:
                    raise ValueError("it has learned from outcomes that are not in the ledger")  # noqa: TRY301 - handled below
                self._trainer.take(snapshot.state, snapshot.weights)
            except Exception as error:  # noqa: BLE001 - of another version, for example; the ledger can replace it
                _log.warning("a snapshot of namespace %r cannot be used (%r); trying an older one", self._name, error)
                self._snapshots.remove(snapshot)
                seq = snapshot.seq - 1  # do not find it again, even if it cannot be deleted
            else:
                return snapshot
        return None

    def _refit(self) -> None:
        """Learn everything from the beginning, from the last ``WINDOW`` outcomes in the ledger."""
        self._known = self._ledger.lessons.last_outcome()
        history = self._history()
        self._trainer.refit(history)
        self._since_snapshot += len(history) if self.waiting else 0
        self._unsaved = len(history)

    def _history(self) -> list[Feedback]:
        history = self._ledger.lessons.history(self._namespace_id, WINDOW, until=self._known)
        silent = self._screen.rebuild(self._known) if self._screen.active else set[int]()
        return [lesson for lesson in history if lesson.key not in silent] if silent else history

    def _rebuild(self) -> None:
        """Learn again from what the ledger still has, since outcomes were withdrawn or forgotten. Meanwhile recalls go on."""
        self._rebuild_due = True
        self._known = self._ledger.lessons.last_outcome()
        self._trainer.rebuild(self._history())
        self._rebuild_due = False

    def refit(self) -> None:
        """Learn everything again; a trained encoder starts from its pretrained weights."""
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
    ) -> bool:
        """Bring encoder and policy up to date with entries of the log and with new cases; return whether more is left to learn.

        ``cases`` is the number of cases that are left; ``remaining`` yields them, for an encoder that must forget all others.
        """
        if self._training is not None and not self._training.try_acquire():
            return self._borrow(todo, new, remaining, seq)
        self._rebuild_due = self._rebuild_due or self._borrows  # the outcomes since the last borrowed snapshot
        self._borrows = False
        self._evicted += sum(change.makes_room for change in todo)
        forgotten = any(change.forgets for change in todo)
        others = any(change.changes_encoder for change in todo) or self._evicted > max(cases, _FORGET_EVICTED)
        self._encoder_rebuild_due = self._encoder_rebuild_due or others
        self._rebuild_due = self._rebuild_due or needs_rebuild(todo) or self._screen.rebuild_due
        if self._rebuild_due or forgotten:
            self._snapshots.drop(self._namespace_id)  # they contain what must be forgotten
        if self._encoder_rebuild_due:
            self._rebuild_encoder(remaining())
        else:
            for rows in new:
                self.encoder.retain(rows)
        self._since_snapshot += len(todo)
        self._unsaved += len(todo)
        self._since_compaction += len(todo)
        rebuilds = self._rebuild_due
        if rebuilds:
            self._rebuild()
            self._seq = seq
        else:
            try:
                self._trainer.learn(self._news(todo))
                self._rebuild_due = self._screen.rebuild_due
            finally:  # also after a failure: what was learned stays learned, and the rest waits
                waiting = self._trainer.waiting_since
                self._seq = seq if waiting is None else max(waiting - 1, 0)
        if rebuilds or self._since_snapshot >= _SNAPSHOT_EVERY:
            self.save()
        if self._since_compaction >= _COMPACT_EVERY:
            self._compact()
        return self.waiting

    def _borrow(
        self, todo: Sequence[Change], new: Sequence[Candidates], remaining: Callable[[], Iterable[Candidates]], seq: int
    ) -> bool:
        """Load the newest snapshot of the process that trains, instead of training here.

        Return False, since no more is left to learn here.
        """
        self._borrows = True
        self._news(todo)  # for what it says about actors
        if any(change.changes_encoder for change in todo):
            self._rebuild_encoder(remaining())
        else:
            for rows in new:
                self.encoder.retain(rows)
        found = self._usable(seq, after=self._seq)
        if found is not None:
            self._seq, self._known = found.seq, found.known
        return False

    def _news(self, changes: Sequence[Change]) -> list[Change]:
        news = [change for change in changes if not change.settles or change.ref > self._known]
        return [change for change in news if not change.settles or self._teaches(change.ref)] if self._screen.active else news

    def _teaches(self, outcome: int) -> bool:
        """Say whether an outcome may teach; if not, tell the policy to expect its reward no longer."""
        teaches, recalls = self._screen.teaches(outcome)
        if not teaches:
            for recall in recalls:
                self.policy.withdraw(recall)
        return teaches

    def rebuild_soon(self) -> None:
        """Build the statistics of the encoder again, and learn all outcomes again, with the next call of ``learn``."""
        self._encoder_rebuild_due = self._rebuild_due = True

    def _rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Build a new encoder from the remaining cases: its statistics must not contain forgotten cases."""
        self._trainer.rebuild_encoder(remaining)
        self._evicted, self._encoder_rebuild_due = 0, False

    @property
    def due(self) -> bool:
        """Whether a rebuild is due that has not succeeded yet."""
        return self._rebuild_due or self._encoder_rebuild_due

    @property
    def waiting(self) -> bool:
        """Whether some of what was passed to ``learn`` has not been learned yet, since training takes time."""
        return self._trainer.waiting_since is not None

    def rebuild(self) -> None:
        """Learn again from the ledger, since the shared weights, which are the prior of this policy, have changed."""
        self._rebuild_due = True
        self._rebuild()
        self._since_snapshot += 1

    def _compact(self) -> None:
        self._since_compaction = 0
        for _ in range(_COMPACT_BATCHES):
            if self._ledger.lessons.compact(self._namespace_id, WINDOW, _COMPACT_EVERY) < _COMPACT_EVERY:
                return

    def save(self) -> None:
        """Write a snapshot if anything was learned since the last one.

        No snapshot is written if another process has withdrawn or forgotten outcomes and this process has not yet read that in
        the log: the snapshot would bring these outcomes back.
        """
        repeating = self._trainer.waiting_since == 0
        if not self._since_snapshot or not self._keep or repeating:
            return
        if not self._ledger.lessons.took_back(self._namespace_id, self._seq):
            policy = self.policy
            state, weights = self._trainer.state()
            about = {"policy": policy.name, "version": policy.version, "seq": self._seq}
            # This fails if the folder has another ledger by now. So it comes first: then no file is written there.
            self._ledger.facts.note_event("trained", self._namespace_id, about)
            found = Snapshot(
                namespace=self._namespace_id,
                seq=self._seq,
                known=self._known,
                policy=policy.name,
                encoder=self.identity,
                state=state,
            )
            with contextlib.nullcontext() if self._training is None else self._training.held():
                self._snapshots.save(found, weights)
            self._since_snapshot = self._unsaved = 0

    def close(self, *, thorough: bool = True) -> None:
        """Save a snapshot, and reduce the recalls of old outcomes in the ledger to what was shown.

        Unless ``thorough``, save only if much was learned, and reduce only if outcomes may have become old meanwhile.
        """
        writes = self._ledger.read_only is None  # otherwise the folder cannot be written, either
        much = thorough or self._trainer.takes_long or self._unsaved >= _WORTH_SAVING
        if writes and much and not self._borrows:
            self.save()
        old_enough = self._since_compaction and self.policy.rewards >= WINDOW // 2  # with fewer, nothing is
        if writes and (thorough or old_enough):
            self._compact()
        if self._training is not None:
            self._training.release()

    def stale(self) -> tuple[str, ...]:
        """Name what ``forget`` cannot clean: the weights of a trained encoder, until they are fitted again."""
        fitted = getattr(self.encoder, "fitted_outcomes", 0)
        if not fitted:
            return ()
        weights = f"the weights of {self.identity} in {self._name!r}, which were fitted to {counted(fitted, 'outcome')}"
        return (f"{weights}: memory.data.refit() fits them again",)
