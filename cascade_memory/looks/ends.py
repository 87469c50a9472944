"""Where the names at the ends of lines stand, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart as little as possible, until neighbours are a gap apart; the gap shrinks if the bounds are too narrow.

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
