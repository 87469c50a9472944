"""Ranking weights learned from the outcomes of all namespaces; each namespace uses them as the mean of its prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cascade_memory.bandit.light import LightPolicy
from cascade_memory.ports.policy import Feedback, Floats


class SharedWeights:
    """The weights of the signals, learned from the outcomes of all namespaces, which share nothing else: no case, no word.

    Before the first outcome, the weights are those with which a policy starts:

    >>> shared = SharedWeights(lambda: LightPolicy(dimension=2))
    >>> shared.mean()
    array([2., 0.])
    """

    def __init__(self, make: Callable[[], LightPolicy]) -> None:
        self._make = make
        self._policy = make()

    def mean(self) -> Floats:
        """Return the present weights."""
        return self._policy.weights

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes of any namespace. Only one thread may call this at a time."""
        self._policy.update(feedback)

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Learn again from these outcomes alone; until that is done, ``mean`` returns the old weights."""
        policy = self._make()
        policy.rebuild(history)
        self._policy = policy
