"""Is the best case better than none? Predicted success with and without, learned from outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cascade_memory.bandit.logistic import LogisticRegression
from cascade_memory.bandit.success_rates import SuccessRate
from cascade_memory.ports.policy import Floats


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected of showing a case: P(it fits), P(success) when shown, P(success) without."""

    fit: Floats
    utility: Floats
    baseline: float


class CaseValue:
    """A mixture in which every part is observable sooner or later.

    ``P(success | case) = q s1 + (1 - q) s0``: with probability q the case fits, and then s1 is the success rate, else s0.
    Without a case it is b. ``q`` is a logistic regression on what the ranking says about the slate (``context``); after a
    success, hindsight tells whether the case fitted, *also when it was not shown*, so q is learned mostly for free. s1, s0
    and b are discounted Beta beliefs. Where nothing tells whether a case fitted, the mixture's own
    posterior does (one EM step).

    The prior of s0 follows b, somewhat below it: an unfitting case rather misleads, and how much is learned.
    Deciding draws from the beliefs (Thompson sampling), tempered so as to explore less than the full width would.
    """

    MISFIT_DISCOUNT = 0.75  # prior guess of s0 / b
    MISFIT_STRENGTH = 8.0  # what that guess is worth, in episodes
    TEMPER = 3.0  # beliefs are drawn from as if they held this many times their evidence
    REFIT_EVERY = 8

    def __init__(self, context_prior: Floats, window: int = 256, discount: float = 0.998) -> None:
        self.fits = LogisticRegression(context_prior, precision=1.0, window=window)
        self.without = SuccessRate(1.0, 1.0, discount)
        self.fitting = SuccessRate(4.0, 0.5, discount)
        self.unfitting = SuccessRate(0.0, 0.0, discount)  # its prior is tied to ``without``
        self._since_fit = 0

    def _unfitting_belief(self) -> Floats:
        guess = self.MISFIT_DISCOUNT * self.without.mean
        return self.unfitting.counts + self.MISFIT_STRENGTH * np.array([guess, 1.0 - guess])

    def predict(self, context: Floats) -> Prediction:
        """Return expectations for one context (d,) or for many (n, d)."""
        belief = self._unfitting_belief()
        fit = self.fits.predict(context)
        unfit_rate = belief[0] / belief.sum()
        return Prediction(fit, fit * self.fitting.mean + (1 - fit) * unfit_rate, self.without.mean)

    def worth_showing(self, context: Floats, rng: np.random.Generator) -> bool:
        """Decide by one draw from the beliefs whether showing the case beats showing none."""
        fit = float(self.fits.predict(context))
        b, s1, s0 = (
            rng.beta(*np.maximum(belief * self.TEMPER, 1e-3))
            for belief in (self.without.belief, self.fitting.belief, self._unfitting_belief())
        )
        return bool(fit * s1 + (1 - fit) * s0 >= b)

    def observe_without(self, reward: float, weight: float) -> None:
        """Learn from an episode in which no case was shown."""
        self._fade()
        self.without.observe(weight * reward, weight * (1 - reward))

    def observe_fit(self, context: Floats, fitted: float, weight: float) -> None:
        """Learn whether the best case would have fitted, although it was not shown."""
        self.fits.add(context, fitted, weight)
        self._refit_sometimes()

    def observe_shown(self, context: Floats, reward: float, fitted: float | None, weight: float) -> None:
        """Learn from an episode in which the case was shown; ``fitted`` is None where nothing tells."""
        self._fade()
        q, s1 = float(self.fits.predict(context)), self.fitting.mean
        belief = self._unfitting_belief()
        s0 = float(belief[0] / belief.sum())
        if fitted is None:
            fitted = q * s1 / max(q * s1 + (1 - q) * s0, 1e-12)  # P(fits | success)
        failed = q * (1 - s1) / max(q * (1 - s1) + (1 - q) * (1 - s0), 1e-12)  # P(fits | failure)
        won, lost = weight * reward, weight * (1 - reward)
        self.fitting.observe(won * fitted, lost * failed)
        self.unfitting.observe(won * (1 - fitted), lost * (1 - failed))
        self.fits.add(context, reward * fitted + (1 - reward) * failed, weight)
        self._refit_sometimes()

    def _fade(self) -> None:
        for rate in (self.without, self.fitting, self.unfitting):
            rate.fade()

    def _refit_sometimes(self) -> None:
        self._since_fit += 1
        if self._since_fit >= self.REFIT_EVERY:
            self._since_fit = 0
            self.fits.fit()

    def state(self) -> dict[str, Floats]:
        """Return the beliefs and the window as named arrays."""
        counts = np.stack([self.without.counts, self.fitting.counts, self.unfitting.counts])
        return {"counts": counts, "fits": self.fits.state(), "since_fit": np.array([float(self._since_fit)])}

    def load(self, state: dict[str, Floats]) -> None:
        """Take over what ``state`` returned."""
        self.without.counts, self.fitting.counts, self.unfitting.counts = (np.array(row) for row in state["counts"])
        self.fits.load(state["fits"])
        self._since_fit = int(state["since_fit"][0])
