"""How a solution did for queries like this one: what weights over signals cannot say of a single case."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, taken
from cascade_memory.bandit.products import rows_times
from cascade_memory.ports.policy import Floats, Slate, State


class Standing(NamedTuple):
    """A solution's outcomes at like queries, each counted as far as its query is alike.

    ``shift`` is what they add to the log odds that it is right: never more than nothing.
    """

    shown: float = 0.0
    succeeded: float = 0.0
    shift: float = 0.0


class _Record(NamedTuple):
    """The last outcomes of one solution: replaced as a whole, never changed."""

    queries: NDArray[np.float32]  # (m, d)
    outcomes: Floats  # (m, 3): 1, reward, log likelihood of it if the solution fits, less that if it does not


class Records:
    """Tells solutions that fail again and again for like queries from those that have had bad luck.

    A weight speaks of every case that shares a signal; that one case is wrong cannot be said with it. So a solution is
    either as good for queries like this one as the ranking thinks, or (one in ten) it never fits them. Each outcome is
    evidence for one of the two, as far as its query is alike: in full if it is as like this one as the nearest case with the
    solution is itself. A failure or two may be bad luck and move little; from the third on each one counts in full.
    A good record moves nothing: the ranking has learned from it already.

    >>> slate = Slate(features=np.zeros((2, 0)), similarity=np.array([0.9, 0.8], np.float32), groups=np.array([4, 5]),
    ...               query=np.array([1.0, 0.0], np.float32))
    >>> records = Records()
    >>> for _ in range(3):
    ...     records.note(4, slate, reward=0.0, rates=(0.4, 0.9))
    >>> standing = records.of(4, slate)
    >>> standing.shown, standing.succeeded, round(standing.shift, 1)
    (3.0, 0.0, -3.1)
    >>> records.of(5, slate)
    Standing(shown=0.0, succeeded=0.0, shift=0.0)
    """

    WINDOW = 1024  # outcomes, of all solutions together
    LAST = 16  # of each
    BAD = 0.1  # of the solutions never fit the queries that find them, as a guess beforehand
    STEEPNESS = 2.0  # per deviation of the candidates' similarity, as a new memory's order
    NARROWEST = 0.02  # deviation: beneath it candidates are all alike

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}
        self._order: deque[int] = deque()  # the solution of each outcome, oldest first

    def __contains__(self, group: int) -> bool:
        """Say whether anything is known of a solution."""
        return group in self._records

    def of(self, group: int, slate: Slate) -> Standing:
        """Return what is known of a solution at queries like this one. It is called at every recall: microseconds count."""
        record = self._records.get(group)
        if record is None or slate.query is None or record.queries.shape[1] != len(slate.query):
            return Standing()
        nearest = slate.similarity[slate.groups.tolist().index(group)]  # candidates come best first
        alike = rows_times(record.queries, slate.query)
        weight = np.exp(np.minimum((alike - nearest) * (self.STEEPNESS / self._spread(slate.similarity)), 0.0))
        shown, succeeded, evidence = (weight @ record.outcomes).tolist()
        return Standing(shown, succeeded, self._shift(evidence))

    def _spread(self, similarity: Floats) -> float:
        """Return the deviation of the candidates' similarity, in a tenth of the time that ``std`` takes."""
        mean = float(similarity.sum()) / len(similarity)
        return math.sqrt(max(float(similarity @ similarity) / len(similarity) - mean * mean, self.NARROWEST**2))

    def _shift(self, evidence: float) -> float:
        """Return how much less likely evidence makes it that a solution is right, as a difference of logarithms."""
        odds = self.BAD / (1.0 - self.BAD)
        return math.log1p(odds) - math.log1p(odds * math.exp(min(-evidence, 700.0))) if evidence < 0.0 else 0.0

    def note(self, group: int, slate: Slate, *, reward: float, rates: tuple[float, float]) -> None:
        """Note how a solution did that was shown; ``rates`` are how often tasks succeed with one that does not fit, or does."""
        if slate.query is None:
            return
        query, outcome = slate.query[None], np.array([[1.0, reward, _evidence(reward, *rates)]])
        known = self._records.get(group)
        if known is None or known.queries.shape[1] != query.shape[1]:
            self._records[group] = _Record(query, outcome)
        else:
            queries, outcomes = np.concatenate([known.queries, query]), np.concatenate([known.outcomes, outcome])
            self._records[group] = _Record(queries[-self.LAST :], outcomes[-self.LAST :])
        self._order.append(group)
        if len(self._order) > self.WINDOW:
            self._drop(self._order.popleft())

    def _drop(self, group: int) -> None:
        """Let go of the oldest outcome of a solution, unless newer ones have already taken its place."""
        record, left = self._records[group], self._order.count(group)
        if not left:
            del self._records[group]
        elif left < len(record.outcomes):
            self._records[group] = _Record(record.queries[-left:], record.outcomes[-left:])

    # -- travelling --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """Return all records as named arrays."""
        records = list(self._records.values())
        return {
            "groups": np.array([*self._records], np.float64),
            "sizes": np.array([len(record.outcomes) for record in records], np.float64),
            "queries": np.concatenate([record.queries for record in records] or [np.zeros((0, 0), np.float32)]),
            "outcomes": np.concatenate([record.outcomes for record in records] or [np.zeros((0, 3))]),
            "order": np.array(self._order, np.float64),
        }

    def load(self, state: State) -> None:
        """Take over what ``state`` returned; refuse, and change nothing, where that is no such state."""
        groups = taken(state, "groups", (None,), 0.0, 2.0**53)
        sizes = taken(state, "sizes", (len(groups),), 1.0, self.LAST).astype(int)
        ends = np.cumsum(sizes)
        total = int(sizes.sum())
        queries = taken(state, "queries", (total, None), -1.01, 1.01).astype(np.float32)  # of norm one
        outcomes = taken(state, "outcomes", (total, 3), -USUAL, USUAL)
        order = deque(int(group) for group in taken(state, "order", (None,), 0.0, 2.0**53))
        if len(order) > self.WINDOW or len({*groups.tolist()}) != len(groups) or {*order} != {*map(int, groups)}:
            raise ValueError("the records are not those of the outcomes in their order")
        self._records = {
            int(group): _Record(queries[start:end], outcomes[start:end])
            for group, start, end in zip(groups, ends - sizes, ends, strict=True)
        }
        self._order = order


def _evidence(reward: float, unfitting: float, fitting: float) -> float:
    """Return the log likelihood of a reward if the solution fits, less that if it does not."""
    bad, good = (min(max(rate, 0.02), 0.98) for rate in (unfitting, fitting))
    return reward * math.log(good / bad) + (1.0 - reward) * math.log((1.0 - good) / (1.0 - bad))
