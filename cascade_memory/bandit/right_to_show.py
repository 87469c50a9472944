"""Limits how many successes the shown cases may cost, and chooses how many cases to show at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cascade_memory.ports.policy import Floats

CREDIT = 2.0  # successes that the cases of a young memory may cost
MOST = 8.0  # successes that count as earned: what was earned long ago must not pay for much harm now
PAUSE = 25  # outcomes after which a bank that has used up its account is tried again; then twice as many, and so on
BY_HINDSIGHT = 0.5  # share of what a case would have earned, as hindsight says, that it earns although it was not shown

CAUTION = 0.5  # standard deviations by which the success rate without a case is taken to be higher than it is known to be
COMPARED = 16.0  # episodes without a case from which it is known how tasks go without one

BANDS = 6  # one case, 2 to 3, 4 to 7, ... 32 and more
_TRY = 1e-6  # what is left for one more case
_FADING = 0.99  # per outcome with cases: what happened 70 of them ago counts half


@dataclass(frozen=True, slots=True)
class Account:
    """The number of successes that cases may still cost; if it is used up, for how many outcomes no case is shown.

    What a shown case earned is the reward minus the success rate without a case. Cases are shown only while the account is
    open; after a pause, one more case is tried. So the expected cost is at most ``CREDIT``, plus one case for each of these
    rare tries: if cases do harm, each one lowers the account by that harm, until the account is used up.

    >>> account = Account().after(np.full(10, -0.5))
    >>> account.open, account.after(np.zeros(PAUSE)).open
    (False, True)
    """

    left: float = CREDIT
    closed_for: int = 0
    pause: int = PAUSE  # how long it is closed the next time

    @property
    def open(self) -> bool:
        """Whether cases may be shown."""
        return self.closed_for == 0

    def after(self, earned: Floats) -> Account:
        """Return the account after these outcomes, the oldest first."""
        left, closed_for, pause = self.left, self.closed_for, self.pause
        for one in earned.tolist():
            left = min(left + one, MOST)
            if closed_for:
                closed_for = closed_for - 1 if left <= 0.0 else 0
                left = left if closed_for else max(left, _TRY)
            elif left <= 0.0:
                closed_for, pause, left = pause, 2 * pause, 0.0
            elif left >= CREDIT:
                pause = PAUSE
        return Account(left, closed_for, pause)


def without_a_case(belief: Floats) -> float:
    """Return the success rate without a case to which cases are compared: the mean of a Beta belief, and a little more.

    An estimate that is too low by chance would let cases cost more than they may. With more episodes without a case, the
    margin goes away.

    >>> round(without_a_case(np.array([5.0, 5.0])), 3), round(without_a_case(np.array([500.0, 500.0])), 3)
    (0.575, 0.508)
    """
    won, lost = belief
    n = won + lost
    return float(won / n + CAUTION * np.sqrt(won * lost / (n * n * (n + 1.0))))


def counts_up_to(k: int) -> list[int]:
    """Return the numbers of cases to choose among: 1, 2, 4, ..., and k in place of the last one.

    >>> counts_up_to(1), counts_up_to(4), counts_up_to(7)
    ([1], [1, 2, 4], [1, 2, 7])
    """
    bands = min(max(k, 1).bit_length(), BANDS)
    return [1 << band for band in range(bands - 1)] + [k]


def how_many(outcomes: Floats, k: int, rng: np.random.Generator) -> int:
    """Choose how many cases to show, at most k: by a draw from the belief about the success rate of each number.

    ``outcomes`` (BANDS, 2) are the successes and failures: the rows are for 1 case, 2 to 3 cases, 4 to 7 cases, and so on.

    >>> one_helps_more = np.array([[90.0, 10.0], [1.0, 9.0], [10.0, 90.0], [0, 0], [0, 0], [0, 0]])
    >>> how_many(one_helps_more, 4, np.random.default_rng(0)), how_many(one_helps_more, 1, np.random.default_rng(0))
    (1, 1)
    """
    counts = counts_up_to(k)
    if len(counts) == 1:
        return counts[0]
    drawn = rng.beta(*(1.0 + outcomes[: len(counts)].T))
    return counts[int(drawn.argmax())]


def noted(outcomes: Floats, count: int, reward: float, weight: float) -> Floats:
    """Return the successes and failures with one more outcome of showing this many cases.

    >>> noted(np.zeros((BANDS, 2)), 3, reward=1.0, weight=1.0)[:3].tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    after = _FADING * outcomes
    after[min(max(count, 1).bit_length(), BANDS) - 1] += (weight * reward, weight * (1.0 - reward))
    return after
