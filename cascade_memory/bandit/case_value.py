"""Decides whether to show the best case or none: it learns from outcomes to predict success with and without the case."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.linear_models import fit_logistic, sigmoid, softmax
from cascade_memory.bandit.right_to_show import BANDS, BY_HINDSIGHT, COMPARED, MOST, Account, how_many, noted, without_a_case
from cascade_memory.ports.policy import Floats, Slate, State

_UNRELATED = 3  # the place of this number in a context


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions for a case: P(the case fits), P(success if it is shown), P(success if no case is shown)."""

    fit: Floats
    utility: Floats
    baseline: float


@dataclass(frozen=True, slots=True)
class _Beliefs:
    """The parameters of ``CaseValue``: weights of q and their covariance, and Beta parameters of b (``alone``), s1 and s0."""

    weights: Floats
    covariance: Floats
    alone: Floats
    fitting: Floats
    unfitting: Floats


def _mean(beta: Floats) -> float:
    return float(beta[0] / beta.sum())


class CaseValue:
    """A mixture model of success: every one of its parts can be observed sooner or later.

    ``P(success | case) = q s1 + (1 - q) s0``: with probability q the case fits, and then s1 is the success rate, otherwise s0.
    Without a case the success rate is b. ``q`` is a logistic regression on numbers from the ranking (``context``).
    After a success, hindsight shows whether the best case fitted, *even if it was not shown*, so most labels for q cost
    nothing. Where hindsight is unavailable, the label is the model's posterior probability that the case fitted. The
    parameters are fitted by expectation maximisation over a bounded window in which older episodes count less, so that a poor
    first guess of one part does not distort the others forever.

    Priors: a fitting case mostly helps; an unfitting one does somewhat worse than no case, and how much worse is learned.
    Thompson sampling decides: it draws the parameters from the beliefs. The draws vary less than the beliefs do (``TEMPER``,
    ``FIT_TEMPER``), so that it explores less. A case has the benefit of the doubt: the rates with a case are drawn several
    times (``BENEFIT``), and one draw in favour of it is enough. ``right_to_show`` bounds what cases may cost in all.
    """

    WINDOW = 1024
    DISCOUNT = 0.999  # per episode: what happened 700 episodes ago counts half
    FITTING_PRIOR = (32.0, 4.0)  # of s1; strong: a failure with a case is first taken as a sign that the case did not fit
    MISFIT_DISCOUNT = 0.75  # prior guess of s0 / b
    MISFIT_STRENGTH = 8.0  # that guess counts as much as this many episodes
    TEMPER = 3.0  # the rates are drawn as if there were this many times as much evidence
    FIT_TEMPER = 2.0  # the same for q
    BENEFIT = 10  # draws of s1 and s0: a case gets the benefit of the doubt, and is hidden only if all of them are against it
    REFIT_EVERY = 8
    EXPLORE_FROM = 16  # episodes; before that the expectation decides, so that a new memory is predictable
    DRAWS = 128  # draws from which a probability is estimated
    # Of q's weights around their prior: the base rate changes easily, and it takes a handful of outcomes to say that unrelated
    # cases help, so that one coincidence does not.
    PRECISION = np.array([1.0, 8.0, 4.0, 0.5])
    _NEVER = -1.0  # the value of "fitted" if it is unknown whether the case fitted

    def __init__(self, context_prior: Floats) -> None:
        self._prior = np.asarray(context_prior, np.float64)
        # One row per episode: context, shown, reward, fitted (or _NEVER), weight.
        self._rows = np.zeros((0, len(self._prior) + 4))
        self._new: list[Floats] = []
        self._beliefs = self._fitted(self._prior, self._rows)
        self.account = Account()
        self._counts = np.zeros((BANDS, 2))  # successes and failures by the number of cases shown

    # -- asking ------------------------------------------------------------------------------------------------------

    def predict(self, context: Floats) -> Prediction:
        """Predict success for one context (see ``contexts_of``), of shape (d,), or for many, of shape (n, d)."""
        beliefs = self._beliefs
        fit = sigmoid(np.asarray(context @ beliefs.weights))
        utility = fit * _mean(beliefs.fitting) + (1 - fit) * _mean(beliefs.unfitting)
        return Prediction(fit, utility, _mean(beliefs.alone))

    def predict_for(
        self, slate: Slate, value: Floats, doubt: Floats | None, chosen: NDArray[np.int64]
    ) -> tuple[Prediction, Floats]:
        """Return the predictions for all candidates, and the context of the choice; for the arguments see ``contexts_of``."""
        contexts, context = contexts_of(slate, value, doubt, chosen)
        return self.predict(contexts), context

    @property
    def unrelated_help(self) -> bool:
        """Whether cases have turned out to help although they are no more similar to the task than unrelated texts are."""
        d = len(self._prior)
        unrelated = self._rows[self._rows[:, _UNRELATED] > 0.0, :d]
        if not len(unrelated):
            return False
        expected = self.predict(unrelated.mean(axis=0))
        return bool(expected.utility >= expected.baseline)

    def without_unrelated(
        self, slate: Slate, value: Floats, doubt: Floats | None, chosen: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the choice without cases that may be unrelated and are not expected to help; the first case always stays."""
        unrelated = _unrelated(slate)[chosen[1:]]
        if not unrelated.any():
            return chosen
        expected = self.predict(contexts_of(slate, value, doubt, chosen[:1])[0])
        helps = expected.utility[chosen[1:]] >= expected.baseline
        return np.append(chosen[:1], chosen[1:][~unrelated | helps])

    def worth_showing(self, context: Floats, rng: np.random.Generator) -> bool:
        """Decide whether to show the case: whether that beats showing none, by draws from the beliefs (``_draws``).

        Before 16 episodes are recorded, the expectations decide. If the account (``right_to_show``) is closed, the answer is
        no. While little is known, half of the recalls show no case in any event (``_share``).
        """
        if not self.account.open:
            return False
        if len(self._rows) + len(self._new) < self.EXPLORE_FROM:
            expected = self.predict(context)
            return bool(expected.utility >= expected.baseline)
        return bool(self._draws(context, rng, 1)[0]) and bool(rng.random() < self._share)

    def chance_worth_showing(self, context: Floats, rng: np.random.Generator) -> float:
        """Estimate the probability that ``worth_showing`` returns True, from many draws."""
        if not self.account.open:
            return 0.0
        if len(self._rows) + len(self._new) < self.EXPLORE_FROM:
            return float(self.worth_showing(context, rng))
        return float(self._draws(context, rng, self.DRAWS).mean()) * self._share

    @property
    def _share(self) -> float:
        """The share of recalls that may show a case: half, until the account is half full or enough episodes had no case."""
        return 1.0 if self.account.left > MOST / 2.0 or self._beliefs.alone.sum() - 2.0 >= COMPARED else 0.5

    def _draws(self, context: Floats, rng: np.random.Generator, n: int) -> NDArray[np.bool_]:
        beliefs = self._beliefs
        # The log odds of q are normal, with the variance of the weights along this context. q must be drawn as well: where
        # hindsight is unavailable, the belief that a case does not fit can be refuted only by showing the case.
        spread = float(np.sqrt(context @ beliefs.covariance @ context / self.FIT_TEMPER))
        fit = sigmoid(np.asarray(context @ beliefs.weights + spread * rng.standard_normal(n)))
        b, s1, s0 = (
            rng.beta(*np.maximum(belief * self.TEMPER, 1e-3), size=(self.BENEFIT, n))
            for belief in (beliefs.alone, beliefs.fitting, beliefs.unfitting)
        )
        return (fit * s1 + (1 - fit) * s0 >= b[0]).any(axis=0)

    def how_many(self, k: int, rng: np.random.Generator) -> int:
        """Choose how many cases to show, at most k: all k until 16 episodes are recorded."""
        return how_many(self._counts, k, rng) if len(self._rows) + len(self._new) >= self.EXPLORE_FROM else k

    @property
    def rates(self) -> tuple[float, float]:
        """Success rates (s0, s1): with a case that does not fit, and with one that does."""
        return _mean(self._beliefs.unfitting), _mean(self._beliefs.fitting)

    # -- learning ----------------------------------------------------------------------------------------------------

    def observe(
        self, context: Floats | None, *, shown: bool, reward: float, fitted: float | None, weight: float, count: int = 1
    ) -> None:
        """Record an episode; ``context`` is None if there was no case, ``fitted`` if it is unknown whether the case fitted.

        ``count`` is how many cases were shown, if any was.
        """
        known = self._NEVER if fitted is None else fitted
        vector = np.zeros(len(self._prior))
        if context is not None:
            vector[: len(context)] = context  # an earlier version stored fewer numbers
        self._new.append(np.concatenate([vector, [float(shown), reward, known, weight]]))
        if shown:
            self._counts = noted(self._counts, count, reward, weight)
        if len(self._new) >= self.REFIT_EVERY or len(self._rows) < self.REFIT_EVERY:
            self._refit()
        else:
            self.account = self.account.after(self._earned(self._new[-1][None]))

    def _earned(self, rows: Floats) -> Floats:
        """Return what the cases of these episodes earned, compared with the success rate without a case as it is known now."""
        shown, reward, known, weight = rows[:, len(self._prior) :].T
        alone = without_a_case(self._beliefs.alone)
        # Where nothing was shown, hindsight may know that a case would have fitted: a bank that has become useful earns so.
        unseen = BY_HINDSIGHT * np.maximum(known, 0.0) * max(_mean(self._beliefs.fitting) - alone, 0.0)
        return weight * np.where(shown > 0.0, reward - alone, unseen)

    def _refit(self) -> None:
        self._rows = np.vstack([self._rows, *self._new])[-self.WINDOW :]
        self._new = []
        self._beliefs = self._fitted(self._beliefs.weights, self._rows)
        self.account = Account().after(self._earned(self._rows))

    def _fitted(self, weights: Floats, rows: Floats, rounds: int = 3) -> _Beliefs:
        d = len(self._prior)
        context, shown, reward, known, weight = rows[:, :d], rows[:, d] > 0, rows[:, d + 1], rows[:, d + 2], rows[:, d + 3]
        weight = weight * self.DISCOUNT ** np.arange(len(rows) - 1, -1, -1.0)
        won, lost = weight * reward, weight * (1 - reward)
        alone = 1.0 + np.array([won[~shown].sum(), lost[~shown].sum()])
        guess = self.MISFIT_STRENGTH * _mean(alone) * self.MISFIT_DISCOUNT
        unfitting_prior = np.array([guess, self.MISFIT_STRENGTH - guess])
        fitting, unfitting = np.array(self.FITTING_PRIOR), unfitting_prior
        is_known = known >= 0.0
        informative = shown | is_known  # a failure without a case says nothing about the case
        fits = known
        for _ in range(rounds):
            q, s1, s0 = sigmoid(context @ weights), _mean(fitting), _mean(unfitting)
            if_won = np.where(is_known, known, q * s1 / (q * s1 + (1 - q) * s0))
            if_lost = q * (1 - s1) / (q * (1 - s1) + (1 - q) * (1 - s0))
            fits = np.where(shown, reward * if_won + (1 - reward) * if_lost, if_won)
            weights = fit_logistic(
                context, fits, weight * informative, start=weights, prior=self._prior, precision=self.PRECISION
            )
            fitting = self.FITTING_PRIOR + np.array([(won * if_won)[shown].sum(), (lost * if_lost)[shown].sum()])
            unfitting = unfitting_prior + np.array([(won * (1 - if_won))[shown].sum(), (lost * (1 - if_lost))[shown].sum()])
        # The information about q: the curvature if every "fitted" were known, minus what is lost because some are unknown
        # (Louis 1982).
        q = sigmoid(context @ weights)
        known_share = np.clip(q * (1 - q) - np.where(is_known, 0.0, fits * (1 - fits)), 0.0, None) * weight * informative
        precision = np.diag(self.PRECISION) + (context * known_share[:, None]).T @ context
        return _Beliefs(weights, np.linalg.inv(precision), alone, fitting, unfitting)

    # -- saving and loading ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """Return the window and the beliefs as named arrays."""
        new = np.array(self._new).reshape(-1, self._rows.shape[1])
        beliefs = self._beliefs
        rates = np.stack([beliefs.alone, beliefs.fitting, beliefs.unfitting])
        return {
            "rows": self._rows,
            "new": new,
            "weights": beliefs.weights,
            "covariance": beliefs.covariance,
            "rates": rates,
            "counts": self._counts,
        }

    def load(self, state: State) -> None:
        """Load what ``state`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        d = len(self._prior)
        rows, new = self._episodes(state, "rows"), self._episodes(state, "new")
        if len(rows) > self.WINDOW or len(new) > self.WINDOW:
            raise ValueError("the state has more episodes than the window holds")
        covariance = checked_array(state, "covariance", (d, d))
        if np.linalg.eigvalsh((covariance + covariance.T) / 2.0).min() < -1e-9:
            raise ValueError("covariance is not positive semidefinite")
        beliefs = _Beliefs(
            checked_array(state, "weights", (d,), -USUAL, USUAL), covariance, *checked_array(state, "rates", (3, 2), low=1e-9)
        )
        counts = np.zeros((BANDS, 2))
        if "counts" in state:  # an earlier version did not count
            counts = checked_array(state, "counts", (BANDS, 2), 0.0, USUAL)
        self._rows, self._new, self._beliefs, self._counts = rows, list(new), beliefs, counts
        self.account = Account().after(self._earned(np.vstack([rows, new])))

    def _episodes(self, state: State, name: str) -> Floats:
        """Check and return rows of episodes: context, shown, reward, fitted (or _NEVER), weight."""
        d = len(self._prior)
        rows = checked_array(state, name, (None, d + 4), -USUAL, USUAL)
        shares = rows[:, d:].copy()
        shares[shares[:, 2] == self._NEVER, 2] = 0.0
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ValueError(f"{name} holds a number that is not between 0 and 1")
        return rows


def contexts_of(slate: Slate, value: Floats, doubt: Floats | None, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Compute the contexts, the numbers from which ``CaseValue`` predicts: that of each candidate, and that of a choice.

    ``value`` (n,) orders the candidates; its softmax is how likely each is right. ``doubt`` (n,) is as in ``records.Standing``.
    The context of a candidate is [1, log odds that its solution is right, cosine, 1 if it may be unrelated]. The probabilities
    of candidates with the same solution are added up. The context of a choice is that of the first chosen candidate, but with
    the log odds that any of the chosen ones is right.
    """
    odds = softmax(value)
    odds = odds if doubt is None else odds * np.exp(doubt)  # a bad record makes it less likely that any candidate is right
    numbers: dict[int, int] = {}
    group = [numbers.setdefault(one, len(numbers)) for one in slate.groups.tolist()]  # 0, 1, ... for each distinct solution
    mass = np.asarray(np.bincount(group, odds), np.float64)[group]
    contexts = np.ones((len(odds), 4))
    contexts[:, 1], contexts[:, 2], contexts[:, 3] = _log_odds(mass), _centred(slate.similarity), _unrelated(slate)
    context = contexts[chosen[0]].copy()
    if len(chosen) > 1:
        agreeing = (slate.groups[:, None] == slate.groups[chosen]).any(axis=1)
        context[1] = _log_odds(odds[agreeing].sum())
    return contexts, context


def _unrelated(slate: Slate) -> NDArray[np.bool_]:
    """Say of each candidate whether it is no more similar to the task than unrelated texts are."""
    return np.zeros(len(slate), bool) if slate.floors is None else np.asarray(slate.similarity < slate.floors)


def _log_odds(mass: Floats | float) -> Floats:
    return np.log((np.asarray(mass) + 0.02) / (1.02 - np.asarray(mass)))


def _centred(similarity: Floats) -> Floats:
    """Shift and scale cosines of sentence embeddings to a mean near 0 and a spread near 1."""
    return (np.asarray(similarity, np.float64) - 0.6) * 5.0
