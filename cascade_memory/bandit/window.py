"""The last pairs that a bandit chose and was rewarded for."""

from __future__ import annotations

import numpy as np

from cascade_memory.bandit.checked import checked_array
from cascade_memory.ports.policy import Floats, State


class Window:
    """Features, labels and weights of the last ``room`` pairs; the oldest is in place 0.

    >>> window = Window(room=2, dimension=1)
    >>> for label in (1.0, 0.0, 1.0):
    ...     window.append(np.array([label + 5]), label, 1.0)
    >>> window.features.tolist(), window.labels.tolist(), window.ever
    ([[5.0], [6.0]], [0.0, 1.0], 3)
    """

    __slots__ = ("_begin", "_end", "_room", "_table", "ever")

    def __init__(self, room: int, dimension: int) -> None:
        self._room = room
        self._table = np.empty((min(room, 32), dimension + 2))
        self._begin = self._end = 0
        self.ever = 0  # pairs that were ever added

    def append(self, feature: Floats, label: float, weight: float) -> None:
        """Add a pair; if the window is full, the oldest pair is dropped."""
        if self._end == len(self._table):  # the table is up to twice as long as needed, so that copying is rare
            held = self._table[self._begin : self._end]
            self._table = np.empty((min(4 * len(held), 2 * self._room), held.shape[1]))
            self._table[: len(held)] = held
            self._begin, self._end = 0, len(held)
        self._table[self._end, :-2] = feature
        self._table[self._end, -2:] = label, weight
        self._end += 1
        self._begin += len(self) > self._room
        self.ever += 1

    def __len__(self) -> int:
        """Return how many pairs are in the window."""
        return self._end - self._begin

    @property
    def features(self) -> Floats:
        """The pairs' features, one row each."""
        return self._table[self._begin : self._end, :-2]

    @property
    def labels(self) -> Floats:
        """The rewards of the pairs; nan where a pair got no credit for the reward."""
        return self._table[self._begin : self._end, -2]

    @property
    def weights(self) -> Floats:
        """How much each pair counts."""
        return self._table[self._begin : self._end, -1]

    @property
    def crowd(self) -> float:
        """The number of pairs ever added, divided by the number in the window: each pair in the window stands for that many."""
        return self.ever / max(len(self), 1)

    def copy(self) -> Window:
        """Return an independent window with the same pairs."""
        other = Window(self._room, self._table.shape[1] - 2)
        other._table, other._end, other.ever = self._table[self._begin : self._end].copy(), len(self), self.ever
        return other


def checked_pairs(state: State, room: int, dimension: int) -> tuple[Floats, Floats, Floats]:
    """Return the checked features, labels and weights of a saved window; raise ``ValueError`` if they are not valid."""
    pairs = checked_array(state, "window.pairs", (None, dimension))
    labels = checked_array(state, "window.labels", (len(pairs), 2), 0.0, 1.0, unknown=True)
    if len(pairs) > room or np.isnan(labels[:, 1]).any():
        raise ValueError("the window has too many pairs, or window.labels lacks a weight")
    return pairs, labels[:, 0], labels[:, 1]
