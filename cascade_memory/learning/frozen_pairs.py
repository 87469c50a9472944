"""A policy on the frozen features of a reranker.

The features are not logged, but computed again from the texts of the chosen pairs: a task, and a case that was shown for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from cascade_memory.bandit.neural_bandit import on_chosen_pairs
from cascade_memory.cycle.learn import learn
from cascade_memory.domain.records import Change
from cascade_memory.learning.ledger_pair_encoder import LedgerPairEncoder, chosen_refs
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.pair_encoder import Candidates, PairEncoder, TrainableEncoder
from cascade_memory.ports.policy import Feedback, Floats, Policy, State

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_HISTORY_AT_ONCE = 64  # outcomes that are learned again between two looks at what is new


class FrozenPairTrainer:
    """Trains only the policy. A history is learned again in parts, since encoding its pairs may take minutes on a CPU.

    The features are not logged: 32 vectors of 768 numbers would take 98 kB per recall. The encoder has the vectors of recent
    pairs in its cache.
    """

    takes_long = True

    def __init__(self, ranker: Ranker, encoder: TrainableEncoder, ledger: Ledger) -> None:
        self._ranker, self._ledger = ranker, ledger
        self._encoder = encoder
        self._history: deque[Feedback] = deque()
        self._waiting: list[Change] = []  # until the history is learned
        self.now: tuple[PairEncoder, Policy] = (encoder, ranker.policy())

    @property
    def waiting_since(self) -> int | None:
        """The first log entry that is not learned yet; 0 while older outcomes are learned again, None if all is learned."""
        if self._history:
            return 0
        return self._waiting[0].seq if self._waiting else None

    def expect(self, changes: Sequence[Change]) -> None:
        """Queue these entries of the log for ``learn``."""
        self._waiting += changes

    def learn(self, changes: Sequence[Change]) -> None:
        """Queue these entries of the log; then learn a part of the history or, if none of it is left, all queued entries."""
        self._waiting += changes
        if self._history:
            some = [self._history.popleft() for _ in range(min(_HISTORY_AT_ONCE, len(self._history)))]
            self.now[1].update(self._read(some))
            return
        todo, self._waiting = self._waiting, []
        learn(todo, ledger=self._ledger, policy=self.now[1], read=self._read)

    def _read(self, outcomes: Sequence[Feedback]) -> list[Feedback]:
        """Reduce outcomes to their chosen pairs, with features; an outcome whose pairs were deleted teaches nothing."""
        refs = [chosen_refs(outcome, self._ledger) if outcome.shown else [] for outcome in outcomes]
        rows = LedgerPairEncoder(self._encoder, self._ledger, "logistic").features([ref for some in refs for ref in some])
        found: list[Feedback] = []
        for outcome, some in zip(outcomes, refs, strict=True):
            features, rows = rows[: len(some)], rows[len(some) :]
            if some and not np.isnan(features).any():
                found.append(on_chosen_pairs(outcome, features))
            else:
                self.now[1].withdraw(outcome.key)
        return found

    def refit(self, history: Sequence[Feedback]) -> None:
        """Begin again with a new policy; later calls of ``learn`` go through the history."""
        self.now = (self._encoder, self._ranker.policy())
        self._history, self._waiting = deque(history), []

    rebuild = refit

    def rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Empty the encoder's cache of pairs, which may hold texts of forgotten cases."""
        del remaining
        self._encoder = cast("TrainableEncoder", self._encoder.emptied())
        self.now = (self._encoder, self.now[1])

    def state(self) -> tuple[dict[str, Floats], Callable[[Path], None] | None]:
        """Export the policy's state."""
        return self.now[1].state_dict(), None

    def take(self, state: State, weights: Path | None) -> None:
        """Load a policy's state."""
        del weights
        self.now[1].load_state_dict(state)
        self._history.clear()
        self._waiting.clear()
