"""How alike two solutions are, by the words of what is stored of them."""

from __future__ import annotations

import math
import re
from collections import Counter

ADAPTED = 0.8  # likeness from which a solution counts as made from a shown one
_WORD = re.compile(r"\w+")


def likeness(one: str, other: str) -> float:
    """Return the cosine of the word counts of two texts: 1 for the same words, 0 if they share none.

    >>> likeness("open the door, take the cup", "open the door; take the red cup") > 0.9
    True
    >>> likeness("open the door", "select name from singer")
    0.0
    """
    a, b = (Counter(_WORD.findall(text.casefold())) for text in (one, other))
    shared = sum(count * b[word] for word, count in a.items())
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())) if shared else 0.0
