"""How one namespace learns: only the policy, or the policy and its encoder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from cascade_memory.bandit.neural_bandit import NeuralBandit, Schedule
from cascade_memory.cycle.learn import learn
from cascade_memory.domain.records import Change
from cascade_memory.learning.columns import Columns
from cascade_memory.learning.ledger_pairs import FrozenPairTrainer, LedgerPairEncoder, chosen_refs, hindsight_lessons
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.encoders import Candidates, PairEncoder, TrainableEncoder
from cascade_memory.ports.policy import Feedback, Floats, Policy, State

if TYPE_CHECKING:
    from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
    from cascade_memory.ledger.core import Ledger

_ATTEMPTS = 3  # attempts to encode the pairs of one outcome


class Trainer(Protocol):
    """Learns from entries of the log, one thread at a time."""

    @property
    def now(self) -> tuple[PairEncoder, Policy]:
        """The present encoder and policy, which belong together: read both at once."""
        ...

    @property
    def waiting_since(self) -> int | None:
        """The first log entry that is not learned yet; 0 while older outcomes are learned again, None if all is learned."""
        ...

    @property
    def takes_long(self) -> bool:
        """Whether a rebuild may take seconds or more."""
        ...

    def expect(self, changes: Sequence[Change]) -> None:
        """Learn from entries of the log: at once if that is quick, otherwise in later calls of ``learn``."""
        ...

    def learn(self, changes: Sequence[Change]) -> None:
        """Learn from entries of the log, or some of them: slow ones wait for the next call, which may pass no entries."""
        ...

    def refit(self, history: Sequence[Feedback]) -> None:
        """Learn everything from the beginning, from these outcomes; a trained encoder starts from its pretrained weights."""
        ...

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop what the policy has learned, and learn again from these outcomes, oldest first."""
        ...

    def rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Build the encoder's statistics again, from these cases alone."""
        ...

    def state(self) -> tuple[dict[str, Floats], Callable[[Path], None] | None]:
        """Export what was learned as arrays, and a function that writes the encoder's weights (None if it has none)."""
        ...

    def take(self, state: State, weights: Path | None) -> None:
        """Load what ``state`` returned."""
        ...


def trainer_for(ranker: Ranker, encoder: PairEncoder, columns: Columns, ledger: Ledger) -> Trainer:
    """Choose the trainer for a ranker."""
    if ranker.training is None:
        if ranker.reencodes:
            return FrozenPairTrainer(ranker, cast("TrainableEncoder", encoder), ledger)
        return PolicyTrainer(ranker, encoder, columns, ledger)
    return NeuralTrainer(ranker, cast("TrainableEncoder", encoder), ledger, ranker.training)


def _rebuilt(encoder: PairEncoder, remaining: Iterable[Candidates]) -> PairEncoder:
    emptied = encoder.emptied()
    for rows in remaining:
        emptied.retain(rows)
    return emptied


class PolicyTrainer:
    """Trains the policy alone; the encoder's features are fixed."""

    waiting_since = None
    takes_long = False

    def __init__(self, ranker: Ranker, encoder: PairEncoder, columns: Columns, ledger: Ledger) -> None:
        self._ranker, self._columns, self._ledger = ranker, columns, ledger
        self.now: tuple[PairEncoder, Policy] = (encoder, ranker.policy())

    def learn(self, changes: Sequence[Change]) -> None:
        """Learn from all these entries."""
        learn(changes, ledger=self._ledger, policy=self.now[1], read=self._read)

    expect = learn

    def refit(self, history: Sequence[Feedback]) -> None:
        """Train a new policy from the beginning, while recalls still use the old one."""
        policy = self._ranker.policy()
        policy.rebuild(self._read(history))
        self.now = (self.now[0], policy)

    rebuild = refit

    def _read(self, outcomes: Sequence[Feedback]) -> list[Feedback]:
        present = self._columns.identity  # nearly all rows are of the present encoder, and need no reading
        return list(outcomes) if all(one.encoder == present for one in outcomes) else self._columns.read(outcomes)

    def rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Replace the encoder by one that has seen only the remaining cases."""
        self.now = (_rebuilt(self.now[0], remaining), self.now[1])

    def state(self) -> tuple[dict[str, Floats], Callable[[Path], None] | None]:
        """Export the policy's state."""
        return self.now[1].state_dict(), None

    def take(self, state: State, weights: Path | None) -> None:
        """Load a policy's state."""
        del weights
        self.now[1].load_state_dict(state)


class NeuralTrainer:
    """Trains head and encoder; ``learn`` returns after each step of the encoder, which may take seconds."""

    takes_long = True

    def __init__(self, ranker: Ranker, encoder: TrainableEncoder, ledger: Ledger, schedule: Schedule) -> None:
        self._ranker, self._ledger, self._schedule = ranker, ledger, schedule
        self._waiting: deque[Feedback | Change] = deque()
        self._attempts = 0  # failed attempts to learn the first waiting entry
        policy = self._fresh_head()
        self._bandit = NeuralBandit(LedgerPairEncoder(encoder, ledger, policy.loss), policy, schedule)
        self.now = self._published()

    def _fresh_head(self) -> NeuralLinLogUCB:
        return cast("NeuralLinLogUCB", self._ranker.policy())

    def _published(self) -> tuple[PairEncoder, Policy]:
        trainee, policy = self._bandit.now
        return cast("LedgerPairEncoder", trainee).encoder, policy

    @property
    def _encoder(self) -> TrainableEncoder:
        return cast("TrainableEncoder", self.now[0])

    @property
    def waiting_since(self) -> int | None:
        """The first log entry that is not learned yet; 0 while older outcomes are learned again, None if all is learned."""
        if not self._waiting:
            return None
        first = self._waiting[0]
        return first.seq if isinstance(first, Change) else 0

    def expect(self, changes: Sequence[Change]) -> None:
        """Queue these entries of the log for ``learn``."""
        self._waiting += changes

    def learn(self, changes: Sequence[Change]) -> None:
        """Learn the waiting entries, then the given ones, until the encoder has taken a step; the rest waits."""
        self._waiting += changes
        failure: Exception | None = None
        while self._waiting:
            item = self._waiting.popleft()
            try:
                trained = self._learn(item)
            except Exception as error:  # noqa: BLE001 - the state is published first; raised below
                failure, trained = error, True
            if trained:
                break
        self.now = self._published()
        if failure is not None:
            raise failure

    def _learn(self, item: Feedback | Change) -> bool:
        if isinstance(item, Feedback):
            return self._teach(item, [item])
        if item.closes:
            for recall in self._ledger.lessons.recalls_of(item.ref):
                self._bandit.now[1].withdraw(recall)
        outcomes = self._ledger.lessons.feedback(item.ref) if item.settles else []
        return self._teach(item, outcomes)

    def _teach(self, item: Feedback | Change, outcomes: Sequence[Feedback]) -> bool:
        """Learn the outcomes of an entry; if their pairs cannot be encoded, learn none of them and retry the entry later."""
        refs = [chosen_refs(outcome, self._ledger) for outcome in outcomes]
        try:
            self._bandit.now[0].features([ref for of_one in refs for ref in of_one])  # the encoder caches them
        except Exception:
            self._attempts += 1
            if self._attempts < _ATTEMPTS:
                self._waiting.appendleft(item)
            else:
                self._attempts = 0
            raise
        self._attempts = 0
        trained = False
        for outcome, of_one in zip(outcomes, refs, strict=True):
            extra = hindsight_lessons(outcome, self._ledger, self._schedule.hindsight)
            trained = self._bandit.learn(outcome, of_one, extra) or trained
        return trained

    def refit(self, history: Sequence[Feedback]) -> None:
        """Begin again with the pretrained encoder; later calls of ``learn`` go through the history."""
        self._begin(self._encoder.untrained())
        self._waiting = deque(history)

    def _begin(self, encoder: TrainableEncoder) -> None:
        policy = self._fresh_head()
        self._bandit = NeuralBandit(LedgerPairEncoder(encoder, self._ledger, policy.loss), policy, self._schedule)
        self._waiting.clear()
        self.now = self._published()

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Learn the head again from what remains; the encoder cannot unlearn and stays as it is.

        Exception: if a refit is still running, it begins again.
        """
        if self.waiting_since == 0:
            self.refit(history)
            return
        lessons = [(outcome, chosen_refs(outcome, self._ledger)) for outcome in history if outcome.shown]
        self._bandit.rebuild(self._fresh_head(), [(outcome, refs) for outcome, refs in lessons if refs])
        self._waiting.clear()
        self.now = self._published()

    def rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Replace the encoder by one that has seen only the remaining cases."""
        trainee, policy = self._bandit.now
        encoder = cast("TrainableEncoder", _rebuilt(cast("LedgerPairEncoder", trainee).encoder, remaining))
        self._bandit.now = (LedgerPairEncoder(encoder, self._ledger, policy.loss), policy)
        self.now = self._published()

    def state(self) -> tuple[dict[str, Floats], Callable[[Path], None] | None]:
        """Export what was learned as arrays, and a function that writes the encoder's weights.

        The arrays have the head, its matrix A (see ``bandit.neural_linlogucb``) and the schedule of training. Instead of the
        function, None is returned if the encoder was not trained yet.
        """
        return self._bandit.state_dict(), self._encoder.save if self._bandit.steps else None

    def take(self, state: State, weights: Path | None) -> None:
        """Load arrays and weights."""
        self._begin(self._encoder.untrained() if weights is None else self._encoder.loaded(weights))
        self._bandit.load_state_dict(state)
        self.now = self._published()
