"""Curves over tasks or episodes: what a chart shows, and where the names of the lines stand, before anybody draws it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cascade_memory.looks.palette import Look

Point = tuple[float, float]
_FEW_PARTS = 2  # a window is at most this part of what there is, so that a short stream has a curve as well
_POINTS = 300  # more would not be visible


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a name, which stands at its end."""

    name: str
    points: Sequence[Point]
    look: Look
    width: float = 2.0


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves with common axes. ``shares``: the values are from 0 to 1 and shown in percent. ``words`` say what can be seen."""

    title: str
    below: str  # the name of the x axis
    curves: Sequence[Curve]
    words: str
    shares: bool = False

    @property
    def top(self) -> float:
        """The highest value of the y axis, which begins at 0."""
        return 1.0 if self.shares else max([1.0, *(y for curve in self.curves for _, y in curve.points)])


def window_for(wanted: int, values: int) -> int:
    """Return over how many values to average: as many as wanted, but fewer if there are few.

    >>> window_for(50, 200), window_for(50, 20), window_for(50, 1)
    (50, 10, 1)
    """
    return max(1, min(wanted, values // _FEW_PARTS))


def moving_mean(values: Sequence[float], window: int) -> Iterator[float]:
    """Yield the mean of the last ``window`` values. It begins at the first full window, so it does not jump at its start.

    >>> list(moving_mean([0.0, 1.0, 1.0, 0.0], 2))
    [0.5, 1.0, 0.5]
    """
    sums = list(itertools.accumulate(values, initial=0.0))
    for end in range(window, len(values) + 1):
        yield (sums[end] - sums[end - window]) / window


def thinned(points: Sequence[Point], most: int = _POINTS) -> list[Point]:
    """Leave out points that would not be visible; the first and the last stay.

    >>> len(thinned([(float(i), 0.0) for i in range(10_000)])), thinned([(1.0, 2.0)])
    (300, [(1.0, 2.0)])
    """
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move names apart that would cover each other: as little as possible, until neighbours are a gap apart.

    The gap shrinks if the bounds are too narrow.

    >>> spread([5.0, 5.0, 0.0], 1.0, 0.0, 10.0)
    [4.5, 5.5, 0.0]
    >>> spread([9.8, 10.0], 1.0, 0.0, 10.0)
    [9.0, 10.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    gap = min(gap, (high - low) / max(1, len(wanted) - 1)) if len(wanted) > 1 else gap
    groups: list[tuple[float, list[int]]] = []  # the middle of a group of neighbours, and its members
    for i in order:
        groups.append((_within(wanted[i], 1, gap, low, high), [i]))
        while len(groups) > 1 and _bottom(groups[-1], gap) - _top(groups[-2], gap) < gap * (1 - 1e-9):
            (_, upper), (_, lower) = groups.pop(), groups.pop()
            members = [*lower, *upper]
            middle = sum(wanted[one] for one in members) / len(members)
            groups.append((_within(middle, len(members), gap, low, high), members))
    found = [0.0] * len(wanted)
    for group in groups:
        for place, i in enumerate(group[1]):
            found[i] = _bottom(group, gap) + place * gap
    return found


def _within(middle: float, members: int, gap: float, low: float, high: float) -> float:
    reach = (members - 1) * gap / 2
    return min(max(middle, low + reach), high - reach)


def _bottom(group: tuple[float, list[int]], gap: float) -> float:
    return group[0] - (len(group[1]) - 1) * gap / 2


def _top(group: tuple[float, list[int]], gap: float) -> float:
    return group[0] + (len(group[1]) - 1) * gap / 2
