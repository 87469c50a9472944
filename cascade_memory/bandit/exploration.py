"""Exploration by a bonus for uncertainty, added to the exploitation score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cascade_memory.ports.policy import Floats


@dataclass(frozen=True, slots=True)
class UpperConfidence:
    """The bonus of an upper confidence bound: ``alpha * uncertainty``, but zero for the first ``burn_in`` rewards.

    Before those rewards the posterior says so little that the bonus would only be noise.

    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=20)
    array([0.5, 1.5])
    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=3)
    array([0., 0.])
    """

    alpha: float = 0.1
    burn_in: int = 16

    def bonus(self, uncertainty: Floats, rewards: int) -> Floats:
        """Compute the bonus of each candidate."""
        return self.alpha * uncertainty if rewards >= self.burn_in else np.zeros_like(uncertainty)
