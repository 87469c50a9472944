"""What ranking is about, learned from every namespace: a place to start from, and to be drawn back to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cascade_memory.bandit.light import LightPolicy
from cascade_memory.ports.policy import Feedback, Floats


class SharedWeights:
    """The weights of a ranking head that sees all outcomes. Nothing else is shared: no case, no word, no cluster.

    >>> shared = SharedWeights(lambda: LightPolicy(dimension=2))
    >>> shared.mean()
    array([2., 0.])
    """

    def __init__(self, make: Callable[[], LightPolicy]) -> None:
        self._make = make
        self._policy = make()

    def mean(self) -> Floats:
        """Return the weights as they are now."""
        return self._policy.head.posterior.mean

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes of whichever namespace. Called by one thread at a time."""
        self._policy.update(feedback)

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Learn afresh from these outcomes; ``mean`` goes on with what was learned before meanwhile."""
        policy = self._make()
        policy.rebuild(history)
        self._policy = policy
