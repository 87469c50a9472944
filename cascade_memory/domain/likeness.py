"""How alike two solutions are, by the words of what is stored of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

ADAPTED = 0.8  # likeness from which a solution counts as made from a shown one
_WORD = re.compile(r"\w+")


class Words(NamedTuple):
    """How often each word occurs in a solution, and the words of its task."""

    counts: Counter[str]
    named: frozenset[str]

    @classmethod
    def of(cls, solution: str, task: str) -> Words:
        """Count the words of a solution, and list those of its task."""
        return cls(Counter(_WORD.findall(solution.casefold())), frozenset(_WORD.findall(task.casefold())))

    def beyond(self, other: Words) -> Counter[str]:
        """Return the counts without the words that the task names and the other solution does not have."""
        names = self.named - other.counts.keys()
        return Counter({word: count for word, count in self.counts.items() if word not in names}) if names else self.counts


def likeness(one: Words, other: Words) -> float:
    """Return the cosine of the word counts of two solutions: 1 for the same words, 0 if they share none.

    Whoever adapts a solution replaces what its task names by what the new task names. So such words do not count.

    >>> likeness(Words.of("restart printer-7, then clean it", "printer-7 jams"),
    ...          Words.of("restart router-12, then clean it", "router-12 hums"))
    1.0
    >>> likeness(Words.of("restart printer-7", "printer-7 jams"), Words.of("replace printer-12", "printer-12 jams"))
    0.5
    """
    a, b = one.beyond(other), other.beyond(one)
    shared = sum(count * b[word] for word, count in a.items())
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())) if shared else 0.0
