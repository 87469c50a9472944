"""Counts who reported outcomes or had cases shown lately, and finds actors who did so more than their fair share."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping


class Turns:
    """Counts the turns of actors over a window. A turn is an outcome that the actor reported, or a case of it that was shown.

    >>> turns = Turns()
    >>> for number in range(100):
    ...     turns.note(0 if number % 2 else number % 20)
    >>> turns.active, round(turns.left_for(0, fair=0.1), 2), turns.left_for(2, fair=0.1)
    (10, 0.18, 1.0)
    """

    WINDOW = 256

    def __init__(self) -> None:
        self._last: deque[tuple[int, float]] = deque(maxlen=self.WINDOW)
        self._counts: Counter[int] = Counter()
        self._weights: defaultdict[int, float] = defaultdict(float)

    def note(self, actor: int, weight: float = 1.0) -> None:
        """Count a turn; ``weight`` is the number of turns it stands for: above 1 if the cases of the actor are seldom shown."""
        if len(self._last) == self.WINDOW:
            oldest, its = self._last[0]
            self._counts[oldest] -= 1
            self._weights[oldest] -= its
            if not self._counts[oldest]:
                del self._counts[oldest], self._weights[oldest]
        self._last.append((actor, weight))
        self._counts[actor] += 1
        self._weights[actor] += weight

    @property
    def actors(self) -> Collection[int]:
        """The actors who had one of the last turns."""
        return self._counts.keys()

    @property
    def active(self) -> int:
        """The number of actors who had one of the last turns."""
        return len(self._counts)

    def quantile(self, values: Mapping[int, float], share: float) -> float:
        """Return a quantile of the actors' values, in which each actor is weighted by how many of the last turns it had.

        >>> turns = Turns()
        >>> for actor in (1, 1, 1, 2, 3):
        ...     turns.note(actor)
        >>> turns.quantile({1: 30.0, 2: 20.0, 3: 10.0}, 0.3), turns.quantile({1: 30.0, 2: 20.0, 3: 10.0}, 0.5)
        (20.0, 30.0)
        """
        passed, wanted = 0, share * len(self._last)
        for actor in sorted(self._counts, key=values.__getitem__):
            passed += self._counts[actor]
            if passed >= wanted:
                return values[actor]
        return 0.0

    def left_for(self, actor: int, fair: float) -> float:
        """Return which share of an actor's turns counts: below 1 if it had more than is fair, and more than chance explains."""
        n = max(1, len(self._last))
        takes = self._weights.get(actor, 0.0) / n
        return fair / takes if takes > fair + 2.0 * math.sqrt(fair * (1.0 - fair) / n) else 1.0
