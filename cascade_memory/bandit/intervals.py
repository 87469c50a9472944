"""95 % confidence intervals for means of numbers in [0, 1] and for differences of means; they hold for small samples too."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_Z = 1.959963984540054  # 95 % of the standard normal distribution lie between -_Z and _Z
ALIKE = 1e-6  # numbers that differ by less are taken as equal: the difference comes from rounding when they were stored


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds of its 95 % confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        """Format the estimate and both bounds.

        >>> print(Interval(0.1, -0.02, 0.22))
        +0.100 (-0.020 to +0.220)
        """
        return f"{self.estimate:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@functools.lru_cache(maxsize=1024)
def student(freedom: float) -> float:
    """Compute the two-sided 95 % quantile of Student's t distribution.

    With t = sqrt(freedom) tan(a), the density becomes cos(a)^(freedom - 1) on (-pi/2, pi/2). It is summed over a grid and
    divided by its total, so no normalising constant is needed.

    >>> round(student(1), 2), round(student(10), 3)
    (12.71, 2.228)
    """
    if freedom > 5_000:
        return _Z
    angle, logarithm = _grid()
    density = np.exp((freedom - 1.0) * logarithm)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(freedom) * np.tan(np.interp(0.95 * area[-1], area, angle)))


@functools.cache
def _grid() -> tuple[Numbers, Numbers]:
    """Return angles from 0 to pi / 2, and the logarithms of their cosines."""
    angle = np.linspace(0.0, math.pi / 2, 20_001)
    return angle, np.log(np.cos(angle))


def mean(values: Numbers) -> Interval:
    """Compute the mean with its interval: Wilson's if all values are 0 or 1, otherwise Student's with the error of ``_spread``.

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
    """Compute by how much the first mean exceeds the second, for two independent samples.

    For zeros and ones this is Newcombe's interval. Each mean p has Wilson's interval (l, u), and the errors of the two means
    are combined as the root of the sum of their squares: ``sqrt((p1 - l1)^2 + (u2 - p2)^2)`` below the estimate (the first
    mean may be lower and the second higher), and the reverse above it. The interval stays within [-1, 1]. Unlike the usual
    interval from ``p (1 - p) / n``, it keeps its width if one sample consists of successes only. For graded rewards this is
    Welch's interval, in which the two samples may have different variances, with the errors of ``_spread``.

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
    """Compute the squared standard error of a mean as if a 0 and a 1 had been observed as well.

    Most graded rewards are nearly equal, and the few others decide the mean: a dozen rewards of 0.9 and 1.0 do not show that
    one task in ten fails. The sample's own variance is then far too small. With the two added values it is right or somewhat
    too large; in a large sample they make no difference.
    """
    seen = np.concatenate([values, [0.0, 1.0]])
    return float(seen.var(ddof=1)) / len(seen)


def pooled(parts: list[tuple[float, Interval]]) -> Interval:
    """Compute the weighted mean of independent estimates; their errors are combined as in ``difference``.

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
    """Compute Wilson's 95 % confidence interval for a proportion, from n zeros and ones of which ``share`` are ones.

    >>> [round(bound, 3) for bound in wilson(0.0, 10)]
    [0.0, 0.278]
    """
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)
