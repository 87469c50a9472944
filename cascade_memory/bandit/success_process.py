"""Learns from rewards alone which signals, and which cases, go with success: a Gaussian process over (task, case) pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.linear_models import softmax
from cascade_memory.bandit.products import inverse_cholesky, product, rows_times
from cascade_memory.ports.policy import Floats, Slate, State

# What one standard deviation of the candidates' values adds to the probability of success, and how far that is from certain:
# the slope is learned. It turns values into probabilities, and back.
SLOPE, SLOPE_DEVIATION, _LEAST_SLOPE = 0.04, 0.04, 0.02
# Prior variances of the parts of success, as probabilities: a signal's weight, a family, a task, the level of all tasks.
SIGNAL, FAMILY, TASK, LEVEL = 0.01, 0.03, 0.02, 0.02
ALIKE = 4  # two tasks count as alike by the cosine to this (even) power: a half at 0.84, a tenth at 0.56, nothing at 0
TRUSTS = np.array([0.0, 0.1, 1.0])  # how far a reward may be the work of the signals: factors of their variance
TRUST_PRIOR = np.array([0.6, 0.3, 0.1])
_LEAST_NOISE = 0.05
_FARTHEST = 12.0  # standard deviations of value that the first candidate may lead by
_NO_SPREAD, _USUAL_SPREAD = 0.1, 2.0  # of the values in a slate: below the first one, all candidates count as equal
_MOST_ROWS = 1_024  # of the window and of what came after the last fit
_MOST_FAMILIES = 8_192  # solutions whose family is known; the oldest are dropped


class _Rows(NamedTuple):
    """The rewarded pairs of the window, oldest first."""

    features: Floats  # (n, d) of the shown case
    queries: NDArray[np.float32]  # (n, dimension)
    groups: NDArray[np.int64]  # (n,) its solution
    families: NDArray[np.int64]  # (n,) the family of that solution
    lead: Floats  # (n,) its value in the starting order, minus that of the first candidate of that order
    spread: Floats  # (n,) standard deviation of the candidates' values in the starting order
    reward: Floats  # (n,)
    weight: Floats  # (n,) its share of the credit of an episode
    telling: Floats  # (n,) how much it says about the signals: less if its solution was shown often, or has a bad record

    def between(self, start: int, end: int) -> _Rows:
        """Return the rows from ``start`` to before ``end``."""
        return self._make(column[start:end] for column in self)

    def followed_by(self, new: _Rows, most: int) -> _Rows:
        """Append rows, and keep the last ``most`` of all."""
        return self._make(np.concatenate([old, more])[-most:] for old, more in zip(self, new, strict=True))


class Forecast(NamedTuple):
    """What was learned about the candidates of one recall.

    ``shown`` and ``succeeded`` (n,) count how often each candidate's family was shown for tasks like this one, and how often
    the task then succeeded. ``record`` (n,) is what these outcomes add to the ranking's value. ``ease`` is how much likelier
    than usual success is on such tasks, whatever is shown: it is the same for all candidates, so it does not change their
    order.
    """

    shown: Floats
    succeeded: Floats
    record: Floats
    ease: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of a fit: it never changes, except that families may be added, so recalls can read it without a lock."""

    rows: _Rows
    families: Mapping[int, int]  # solution -> family, of those that descend from another one
    pull: Floats  # (n,) by how much each reward was a surprise, after all others are taken into account
    weights: Floats  # (d,) what the rewards add to the weights of the signals
    trust: Floats  # (3,) how likely each of TRUSTS is
    slope: float  # what one unit of value adds to the probability of success
    precision: Floats  # (d, d) of the weights
    evidence: float  # log probability (up to a constant) that the model gives to the rewards of the window

    @property
    def trusted(self) -> float:
        """How far rewards may change the weights: 0 not at all, 1 fully."""
        return float(self.trust @ TRUSTS)

    def family_sizes(self) -> tuple[int, ...]:
        """Return the number of solutions in each family that has more than one, the largest first."""
        children = Counter(list(self.families.values()))  # the learner may add one meanwhile
        return tuple(1 + count for _, count in children.most_common())

    def predict(self, slate: Slate) -> Forecast:
        """Predict for the candidates of a slate. Every recall calls this: microseconds count."""
        n, rows = len(slate), self.rows
        if not n or slate.query is None or len(slate.query) != rows.queries.shape[1]:
            return Forecast(np.zeros(n), np.zeros(n), np.zeros(n), 0.0)
        alike = rows_times(rows.queries, slate.query).astype(np.float64) ** ALIKE
        pull = alike * self.pull
        of_slate = [self.families.get(group, group) for group in slate.groups.tolist()]
        known, places = np.unique(of_slate, return_inverse=True)
        of_row = np.searchsorted(known, rows.families)
        of_row[of_row == len(known)] = 0
        same = known[of_row] == rows.families
        sums = (np.bincount(of_row[same], part[same], len(known))[places] for part in (alike, alike * rows.reward, pull))
        shown, succeeded, record = (np.asarray(part, np.float64) for part in sums)
        return Forecast(shown, succeeded, FAMILY * record / self.slope, TASK * float(pull.sum()))


class SuccessProcess:
    """Predicts success where solutions never recur, so that only the reward of the shown case teaches.

    ``P(success) = level + slope * value + signals + case + task + noise``. ``signals`` is linear in the features. ``case`` is
    what is special about one case for tasks like this one. ``task`` says how hard such tasks are, whatever is shown. All are
    Gaussian, so each surprise is divided among them exactly: if all cases fail on tasks of a kind, the tasks are hard; if one
    case fails where others succeed, the case is bad. How far rewards can be trusted is learned as well: several degrees of
    trust are weighted by how likely each of them makes the observed rewards.

    >>> process, query = SuccessProcess(), np.array([1.0, 0.0], np.float32)
    >>> slate = Slate(features=np.zeros((2, 1)), similarity=np.array([0.9, 0.8]), groups=np.array([4, 5]), query=query)
    >>> for _ in range(4):
    ...     process.note(slate, slate.features, 0, reward=0.0, weight=1.0, start=np.array([2.0]))
    ...     process.note(slate, slate.features, 1, reward=1.0, weight=1.0, start=np.array([2.0]))
    >>> process.fit()
    >>> process.fitted.predict(slate).record.round(1)
    array([-8.,  8.])
    """

    WINDOW = 256
    HALF = 150.0  # rewards after which an older one counts half

    def __init__(self) -> None:
        self._rows: _Rows | None = None
        self._families: dict[int, int] = {}
        self._unfitted = 0  # rows that were noted since the last fit
        self.fitted: Fitted | None = None

    def __len__(self) -> int:
        """Return the number of rewards in the window."""
        return 0 if self._rows is None else min(len(self._rows.reward), self.WINDOW)

    def note(self, slate: Slate, features: Floats, place: int, reward: float, weight: float, start: Floats) -> None:
        """Record the reward of the candidate at a place; ``start`` are the weights of the features before any reward."""
        rows = self._rows
        self._unfitted += 1
        if rows is not None and slate.query is not None and not rows.queries.any():
            rows = rows._replace(queries=np.zeros((len(rows.reward), len(slate.query)), np.float32))
        # Where the task's vector is not stored any more, the pair still teaches about the signals: 0 is like no task.
        query = slate.query
        if query is None or (rows is not None and len(query) != rows.queries.shape[1]):
            query = np.zeros(1 if rows is None else rows.queries.shape[1], np.float32)
        value = features @ start
        row = _Rows(
            features[place, None],
            query[None],
            slate.groups[place, None],
            np.array([self.family(int(slate.groups[place]))]),
            np.array([value[place] - value.max()]),
            value.std(keepdims=True),
            np.array([reward]),
            np.array([weight]),
            np.ones(1),
        )
        if rows is None:
            self._rows = row
            return
        # The same solution for the same task again: this says more about the solution, but little more about the signals.
        again = rows_times(rows.queries[rows.groups == row.groups], query).astype(np.float64) ** ALIKE
        row = row._replace(telling=1.0 / (1.0 + again.sum(keepdims=True)))
        # The rows that came after the last fit are beyond the window, so that a fit can be repeated.
        self._rows = rows.followed_by(row, min(self.WINDOW + self._unfitted, _MOST_ROWS))
        self._unfitted = min(self._unfitted, len(self._rows.reward))

    def doubt(self, group: int, share: float) -> None:
        """Let the rewards of a solution count at most ``share`` for the signals: the solution alone is blamed for the rest."""
        if self._rows is not None:
            telling = np.where(self._rows.groups == group, np.minimum(self._rows.telling, share), self._rows.telling)
            self._rows = self._rows._replace(telling=telling)

    def family(self, group: int) -> int:
        """Return the family of a solution: the first one from which it descends, or itself if it was made from no other."""
        return self._families.get(group, group)

    def descends(self, child: int, parent: int) -> None:
        """Record that the solution ``child`` was made from the solution ``parent``."""
        self._families.setdefault(child, self.family(parent))
        if len(self._families) > _MOST_FAMILIES:
            del self._families[next(iter(self._families))]

    def fit(self) -> None:
        """Fit everything in the window."""
        self._unfitted = 0
        self.fit_again()

    def fit_again(self) -> None:
        """Repeat the last fit, without the rewards that came after it."""
        end = 0 if self._rows is None else len(self._rows.reward) - self._unfitted
        if self._rows is None or end <= 0:
            self.fitted = None
            return
        rows = self._rows.between(max(end - self.WINDOW, 0), end)
        n = len(rows.reward)
        level = (rows.reward.sum() + 2.0) / (n + 4.0)
        spread = rows.spread[rows.spread > _NO_SPREAD]
        unit = float(np.median(spread)) if len(spread) else _USUAL_SPREAD  # of value, in which slopes are measured
        usual, deviation, least = SLOPE / unit, SLOPE_DEVIATION / unit, _LEAST_SLOPE / unit
        lead = np.maximum(rows.lead, -_FARTHEST * unit)  # a damaged row must not outweigh all others
        surprise = rows.reward - level - usual * lead
        age = rows.weight[::-1].cumsum()[::-1] - rows.weight  # in rewards: the cases of one recall share its reward
        noise = max(level * (1.0 - level), _LEAST_NOISE) * 2.0 ** (age / self.HALF) / rows.weight
        alike = product(rows.queries, np.ascontiguousarray(rows.queries.T)).astype(np.float64) ** ALIKE
        same = rows.families[:, None] == rows.families
        features = rows.features * rows.telling[:, None]
        signals = SIGNAL * product(features, np.ascontiguousarray(features.T))
        others = alike * (FAMILY * same + TASK) + LEVEL + np.diag(noise)
        others += deviation**2 * np.outer(lead, lead)
        evidence, pulls = np.log(TRUST_PRIOR), np.zeros((len(TRUSTS), n))
        for i, trust in enumerate(TRUSTS):
            root = inverse_cholesky(trust * signals + others)
            white = root @ surprise
            evidence[i] += np.log(np.diag(root)).sum() - 0.5 * float(white @ white)
            pulls[i] = root.T @ white
        trust = softmax(evidence)
        likely = float(evidence.max() + np.log(np.exp(evidence - evidence.max()).sum()))
        pull = trust @ pulls
        slope = max(usual + deviation**2 * float(pull @ lead), least)
        weights = SIGNAL * ((trust * TRUSTS) @ pulls @ features) / slope
        prior = np.eye(len(weights)) / (max(float(trust @ TRUSTS), 1e-3) * SIGNAL)
        precision = slope**2 * (prior + (features / noise[:, None]).T @ features)
        self.fitted = Fitted(rows, self._families, pull, weights, trust, slope, precision, likely)

    # -- saving and loading ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """Export the window as named arrays."""
        rows = self._rows
        families = np.array([*self._families.items()], np.float64).reshape(-1, 2)
        if rows is None:
            nothing = {"features": np.zeros((0, 0)), "queries": np.zeros((0, 0), np.float32), "numbers": np.zeros((0, 7))}
            return {**nothing, "families": families, "unfitted": np.zeros(1)}
        columns = (rows.groups, rows.families, rows.lead, rows.spread, rows.reward, rows.weight, rows.telling)
        numbers = np.column_stack(columns).astype(np.float64)
        return {
            "features": rows.features,
            "queries": rows.queries,
            "numbers": numbers,
            "families": families,
            "unfitted": np.array([self._unfitted], np.float64),
        }

    def load(self, state: State, dimension: int) -> None:
        """Load what ``state`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        numbers = checked_array(state, "numbers", (None, 7), -(2.0**53), 2.0**53)
        descent = checked_array(state, "families", (None, 2), 0.0, 2.0**53)
        if len(descent) > _MOST_FAMILIES or (descent % 1.0).any():
            raise ValueError("families holds something other than numbers of solutions")
        families = {int(child): int(family) for child, family in descent}
        (unfitted,) = checked_array(state, "unfitted", (1,), 0.0, len(numbers))
        if not len(numbers):
            self._rows, self._families, self._unfitted = None, families, 0
            return
        features = checked_array(state, "features", (len(numbers), dimension), -USUAL, USUAL)
        queries = checked_array(state, "queries", (len(numbers), None), -1.01, 1.01).astype(np.float32)  # unit vectors
        solutions, (lead, spread), shares = numbers[:, :2], numbers[:, 2:4].T, numbers[:, 4:]
        within = (
            ((shares >= 0.0) & (shares <= 1.0)).all()
            and (shares[:, 1] > 0.0).all()
            and (np.abs(lead) <= USUAL * dimension).all()
            and ((spread >= 0.0) & (spread <= USUAL * dimension)).all()
        )
        # Until the next reward, the rows before the last fit are longer than the window by those that this fit took in.
        if len(numbers) > _MOST_ROWS or not within or (solutions % 1.0).any():
            raise ValueError("numbers holds a row that is not a rewarded pair")
        groups, of_rows = solutions.astype(np.int64).T
        self._rows, self._families = _Rows(features, queries, groups, of_rows, lead, spread, *shares.T), families
        self._unfitted = int(unfitted)
