"""Matchers decide whether two solutions agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.trajectory import Solution


class SolutionMatcher(Protocol):
    """Decides which recalled cases would have been right, given a verified solution. This yields the hindsight labels."""

    def key(self, solution: Solution) -> str:
        """Return a text that is equal for solutions that certainly agree."""
        ...

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> Sequence[float]:
        """Return how far each stored solution agrees with the verified one, in [0, 1]; nan if that is unknown."""
        ...
