"""95 % intervals for means of numbers in [0, 1] and for their differences, also of few."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_Z = 1.959963984540054  # a standard normal lies within this with 95 %
ALIKE = 1e-6  # numbers that differ by less are the same, but for how they were stored


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and between what the truth lies with 95 % confidence."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return all three.

        >>> print(Interval(0.1, -0.02, 0.22))
        +0.100 (-0.020 to +0.220)
        """
        return f"{self.estimate:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@functools.lru_cache(maxsize=1024)
def student(freedom: float) -> float:
    """Return within what Student's t lies with 95 %.

    With t = sqrt(freedom) tan(a) its density becomes cos(a)^(freedom - 1) on (-pi/2, pi/2): a sum over a grid, and no
    constant is needed, since the whole is one.

    >>> round(student(1), 2), round(student(10), 3)
    (12.71, 2.228)
    """
    if freedom > 5_000:
        return _Z
    angle = np.linspace(0.0, math.pi / 2, 20_001)
    density = np.cos(angle) ** (freedom - 1.0)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(freedom) * np.tan(np.interp(0.95 * area[-1], area, angle)))


def mean(values: Numbers) -> Interval:
    """Return the mean with its interval: Wilson's for what is 0 or 1, Student's otherwise, with the spread of ``_spread``.

    >>> print(mean(np.array([1.0, 1.0, 0.0, 1.0])))
    +0.750 (+0.301 to +0.954)
    >>> print(mean(np.array([0.9, 0.8, 0.9, 1.0])))
    +0.900 (+0.498 to +1.000)
    """
    average = float(values.mean())
    if _binary(values):
        return Interval(average, *wilson(average, len(values)))
    half = student(len(values) + 1) * math.sqrt(_spread(values))
    return Interval(average, max(0.0, average - half), min(1.0, average + half))


def difference(first: Numbers, second: Numbers) -> Interval:
    """Return by how much the first mean is above the second, of two independent samples.

    Of zeros and ones it is Newcombe's interval: each mean has Wilson's interval (l, u), the set of those p whose normal test
    does not reject what was seen, and the error of a difference is that of its parts squared and added: below, what the first
    may fall and the second may rise, ``sqrt((p1 - l1)^2 + (u2 - p2)^2)``, and the other way round above. It stays within
    [-1, 1] and keeps a width where one sample has successes only, which the usual ``p (1 - p) / n`` does not. Of graded
    rewards it is Welch's, which lets the two spread differently, with the spread of ``_spread``.

    >>> print(difference(np.ones(10), np.zeros(10)))
    +1.000 (+0.608 to +1.000)
    """
    one, two = float(first.mean()), float(second.mean())
    if _binary(first) and _binary(second):
        (low_1, high_1), (low_2, high_2) = wilson(one, len(first)), wilson(two, len(second))
        below, above = math.hypot(one - low_1, high_2 - two), math.hypot(high_1 - one, two - low_2)
        return Interval(one - two, one - two - below, one - two + above)
    part_1, part_2 = _spread(first), _spread(second)
    freedom = (part_1 + part_2) ** 2 / (part_1**2 / (len(first) + 1) + part_2**2 / (len(second) + 1))
    half = student(freedom) * math.sqrt(part_1 + part_2)
    return Interval(one - two, max(-1.0, one - two - half), min(1.0, one - two + half))


def _spread(values: Numbers) -> float:
    """Return the squared error of a mean, reckoned as if a 0 and a 1 had come as well.

    Nearly all graded rewards are alike, and the few that are not decide: a dozen of 0.9 and 1.0 do not show that one in ten
    fails. Their own spread is then far too small. With those two it is right or somewhat large, and of many the same.
    """
    seen = np.concatenate([values, [0.0, 1.0]])
    return float(seen.var(ddof=1)) / len(seen)


def pooled(parts: list[tuple[float, Interval]]) -> Interval:
    """Return the weighted mean of independent estimates; their errors add up as in ``difference``.

    >>> print(pooled([(1.0, Interval(0.2, 0.1, 0.3)), (1.0, Interval(0.4, 0.3, 0.5))]))
    +0.300 (+0.229 to +0.371)
    """
    total = sum(weight for weight, _ in parts)
    estimate = sum(weight * one.estimate for weight, one in parts) / total
    below = math.hypot(*(weight * (one.estimate - one.low) for weight, one in parts)) / total
    above = math.hypot(*(weight * (one.high - one.estimate) for weight, one in parts)) / total
    return Interval(estimate, estimate - below, estimate + above)


def _binary(values: Numbers) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return between what the mean of n zeros and ones lies of which this share are ones.

    >>> [round(bound, 3) for bound in wilson(0.0, 10)]
    [0.0, 0.278]
    """
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)
