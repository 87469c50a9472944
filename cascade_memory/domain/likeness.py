"""How alike two solutions are, by the words of their stored texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

ADAPTED = 0.8  # likeness from which a solution counts as made from a shown one
_LEFT = 0.5  # share of the different words of a solution that must be left
_WORD = re.compile(r"\w+")


class Words(NamedTuple):
    """How often each word occurs in a solution, and the words of its task."""

    counts: Counter[str]
    named: frozenset[str]

    @classmethod
    def of(cls, solution: str, task: str) -> Words:
        """Count the words of a solution, and list those of its task."""
        return cls(Counter(_WORD.findall(solution.casefold())), frozenset(_WORD.findall(task.casefold())))

    def beyond(self, other: Words) -> Counter[str] | None:
        """Return the counts, without words of the own task that the other solution lacks; None if too few words are left."""
        names = self.named - other.counts.keys()
        rest = Counter({word: count for word, count in self.counts.items() if word not in names})
        return rest if len(rest) > _LEFT * len(self.counts) else None


def likeness(one: Words, other: Words) -> float:
    """Return the cosine of the word counts of two solutions: 1 for the same words, 0 if they share none.

    To adapt a solution to a new task, one replaces the names of its own task by those of the new task. So these words do not
    count, unless they make up most of a solution: the rest of "open the door" would be like anything.

    >>> likeness(Words.of("restart printer-7, then clean it", "printer-7 jams"),
    ...          Words.of("restart router-12, then clean it", "router-12 hums"))
    1.0
    >>> likeness(Words.of("open my door", "open my door, please"), Words.of("close the window", "close the window, please"))
    0.0
    """
    a, b = one.beyond(other), other.beyond(one)
    if a is None or b is None:
        a, b = one.counts, other.counts
    shared = sum(count * b[word] for word, count in a.items())
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())) if shared else 0.0
