"""How each solution did for queries like the present one. All cases share the weights, so the weights cannot express this."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.products import rows_times
from cascade_memory.ports.policy import Floats, Slate, State


class Standing(NamedTuple):
    """A summary of a solution's outcomes for similar queries, each weighted by the similarity of its query.

    ``shown`` and ``succeeded`` are how often the solution was shown, and how often the task then succeeded. ``shift`` is what
    these outcomes add to the log odds that the solution is right. ``doubt`` is the part of ``shift`` that comes from the
    possibility that the solution never fits such queries; it is zero or less.
    """

    shown: float = 0.0
    succeeded: float = 0.0
    shift: float = 0.0
    doubt: float = 0.0


class _Record(NamedTuple):
    """The last outcomes of one solution; immutable."""

    queries: NDArray[np.float32]  # (m, d)
    outcomes: Floats  # (m, 3): 1, reward, log likelihood ratio of that reward (the solution fits : it does not)


class Records:
    """Distinguishes solutions that fail again and again for similar queries from those that had bad luck.

    All cases share the weights of the signals, so no weight can express that one case is wrong. The model is: for queries like
    this one, a solution is either as good as the ranking thinks, or (one in ten) it never fits. Each outcome is evidence for
    one of the two, weighted by how similar its query is to this one. The weight is full if that query is at least as similar as
    the nearest case with the solution. One or two failures may be bad luck and change little; from the third on, each one
    counts in full. A good record changes nothing: the ranking has learned from it already.

    >>> slate = Slate(features=np.zeros((2, 0)), similarity=np.array([0.9, 0.8], np.float32), groups=np.array([4, 5]),
    ...               query=np.array([1.0, 0.0], np.float32))
    >>> records = Records()
    >>> for _ in range(3):
    ...     records.note(4, slate, reward=0.0, rates=(0.4, 0.9))
    >>> standing = records.of(4, slate)
    >>> standing.shown, standing.succeeded, round(standing.shift, 1)
    (3.0, 0.0, -3.1)
    >>> records.of(5, slate)
    Standing(shown=0.0, succeeded=0.0, shift=0.0, doubt=0.0)
    """

    WINDOW = 1024  # outcomes of all solutions together
    LAST = 16  # outcomes of each solution
    BAD = 0.1  # prior probability that a solution never fits the queries that find it
    STEEPNESS = 2.0  # of the weight, per standard deviation of the candidates' similarity; like COSINE_WEIGHT
    NARROWEST = 0.02  # smallest standard deviation: below it all candidates are about equally similar

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}
        self._order: deque[int] = deque()  # the solution of each outcome, oldest first

    def known(self, groups: Iterable[int], slate: Slate) -> dict[int, Standing]:
        """Summarise the records of these solutions for queries like this one; those without a record are left out."""
        return {group: self.of(group, slate) for group in groups if group in self._records}

    def of(self, group: int, slate: Slate) -> Standing:
        """Summarise the record of a solution for queries like this one. Every recall calls this: microseconds count."""
        record = self._records.get(group)
        if record is None or slate.query is None or record.queries.shape[1] != len(slate.query):
            return Standing()
        nearest = slate.similarity[slate.groups.tolist().index(group)]  # the most similar candidates come first
        alike = rows_times(record.queries, slate.query)
        weight = np.exp(np.minimum((alike - nearest) * (self.STEEPNESS / self._spread(slate.similarity)), 0.0))
        shown, succeeded, evidence = (weight @ record.outcomes).tolist()
        doubt = self._doubt(evidence)
        return Standing(shown, succeeded, doubt, doubt)

    def _spread(self, similarity: Floats) -> float:
        """Compute the standard deviation of the candidates' similarity, in a tenth of the time that ``std`` takes."""
        mean = float(similarity.sum()) / len(similarity)
        return math.sqrt(max(float(similarity @ similarity) / len(similarity) - mean * mean, self.NARROWEST**2))

    def _doubt(self, evidence: float) -> float:
        """Compute by how much the evidence lowers the log probability that a solution is right."""
        odds = self.BAD / (1.0 - self.BAD)
        return math.log1p(odds) - math.log1p(odds * math.exp(min(-evidence, 700.0))) if evidence < 0.0 else 0.0

    def note(self, group: int, slate: Slate, *, reward: float, rates: tuple[float, float], weight: float = 1.0) -> None:
        """Record how a shown solution did; ``rates`` are the success rates with an unfitting solution and with a fitting one.

        ``weight`` is how much this outcome counts: less than 1 if its source is not quite believed.
        """
        if slate.query is None:
            return
        query, outcome = slate.query[None], weight * np.array([[1.0, reward, _evidence(reward, *rates)]])
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
        """Drop the oldest outcome of a solution, unless newer outcomes have already replaced it."""
        record, left = self._records[group], self._order.count(group)
        if not left:
            del self._records[group]
        elif left < len(record.outcomes):
            self._records[group] = _Record(record.queries[-left:], record.outcomes[-left:])

    # -- saving and loading ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """Export all records as named arrays."""
        records = list(self._records.values())
        return {
            "groups": np.array([*self._records], np.float64),
            "sizes": np.array([len(record.outcomes) for record in records], np.float64),
            "queries": np.concatenate([record.queries for record in records] or [np.zeros((0, 0), np.float32)]),
            "outcomes": np.concatenate([record.outcomes for record in records] or [np.zeros((0, 3))]),
            "order": np.array(self._order, np.float64),
        }

    def load(self, state: State) -> None:
        """Load what ``state`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        groups = checked_array(state, "groups", (None,), 0.0, 2.0**53)
        sizes = checked_array(state, "sizes", (len(groups),), 1.0, self.LAST).astype(int)
        ends = np.cumsum(sizes)
        total = int(sizes.sum())
        queries = checked_array(state, "queries", (total, None), -1.01, 1.01).astype(np.float32)  # unit vectors
        outcomes = checked_array(state, "outcomes", (total, 3), -USUAL, USUAL)
        order = deque(int(group) for group in checked_array(state, "order", (None,), 0.0, 2.0**53))
        if len(order) > self.WINDOW or len({*groups.tolist()}) != len(groups) or {*order} != {*map(int, groups)}:
            raise ValueError("groups do not match the solutions named in order")
        self._records = {
            int(group): _Record(queries[start:end], outcomes[start:end])
            for group, start, end in zip(groups, ends - sizes, ends, strict=True)
        }
        self._order = order


def _evidence(reward: float, unfitting: float, fitting: float) -> float:
    """Compute the log of how many times likelier a reward is if the solution fits than if it does not."""
    bad, good = (min(max(rate, 0.02), 0.98) for rate in (unfitting, fitting))
    return reward * math.log(good / bad) + (1.0 - reward) * math.log((1.0 - good) / (1.0 - bad))
