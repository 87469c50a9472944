"""How often does the agent succeed: without a case, with one that fits, with one that does not?"""

from __future__ import annotations

import numpy as np

from cascade_memory.ports.policy import Floats


class SuccessRate:
    """A Beta belief about one probability, fed with (fractions of) successes and failures; old evidence fades.

    >>> rate = SuccessRate(1.0, 1.0, discount=1.0)
    >>> rate.observe(3.0, 1.0)
    >>> rate.mean
    0.6666666666666666
    """

    def __init__(self, successes: float, failures: float, discount: float = 0.998) -> None:
        self.prior = np.array([successes, failures])
        self.counts = np.zeros(2)  # evidence beyond the prior
        self.discount = discount

    def observe(self, successes: float, failures: float) -> None:
        """Add evidence."""
        self.counts = self.counts + np.array([successes, failures])

    def fade(self) -> None:
        """Let one episode pass: the world may have changed."""
        self.counts = self.counts * self.discount

    @property
    def belief(self) -> Floats:
        """The two parameters of the Beta distribution."""
        return self.prior + self.counts

    @property
    def mean(self) -> float:
        """Expected success."""
        return float(self.belief[0] / self.belief.sum())
