"""What uncertainty is worth: a bonus on top of the exploitation score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cascade_memory.ports.policy import Floats


@dataclass(frozen=True, slots=True)
class UpperConfidence:
    """``alpha * uncertainty``, once there is something to be uncertain about.

    With a fresh posterior the bonus is noise, so it stays zero for the first ``burn_in`` rewards.

    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=20)
    array([0.5, 1.5])
    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=3)
    array([0., 0.])
    """

    alpha: float = 0.1
    burn_in: int = 16

    def bonus(self, uncertainty: Floats, rewards: int) -> Floats:
        """Return the bonus of each candidate."""
        return self.alpha * uncertainty if rewards >= self.burn_in else np.zeros_like(uncertainty)
