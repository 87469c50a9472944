"""Which part a word has in an action: after words such as "from" stands a place, and elsewhere the same word is something else.

``SELECT name FROM country`` fails where there is no table of countries. ``SELECT country FROM singer`` is no such mistake. And
``SELECT age FROM breeds``, where breeds have no age, says nothing of ``SELECT age FROM teacher``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import pairwise

from cascade_memory.cycle.action_words import words_in

_SAYS_WHERE = frozenset(["from", "into", "join"])
_MAY_SAY_WHERE = _SAYS_WHERE | frozenset(["at", "import", "in", "of", "on", "table", "to", "update"])
Parts = Mapping[str, Set[str]]


def parts_of(text: str) -> Parts:
    """Return for each word of a text the words that it follows somewhere.

    >>> sorted(parts_of("take cup 1 from shelf 1")["#"]), parts_of("take cup")["take"]
    (['cup', 'shelf'], set())
    """
    words = words_in(text)
    found: dict[str, set[str]] = {word: set() for word in words}
    for one, following in pairwise(words):
        found[following].add(one)
    return found


def places_in(parts: Parts) -> frozenset[str]:
    """Return the words that are said to be a place in an action.

    >>> sorted(places_in(parts_of("SELECT s.name FROM shop AS s JOIN staff AS t ON s.id = t.shop")))
    ['shop', 'staff']
    """
    return frozenset(word for word, before in parts.items() if before & _SAYS_WHERE)


def may_be_places(words: Set[str], parts: Parts) -> bool:
    """Say whether each of the words may be a place in another action.

    >>> parts = parts_of("SELECT T1.country FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer")
    >>> may_be_places({"country"}, parts), may_be_places({"singer", "song"}, parts)
    (False, True)
    """
    return all(parts.get(word, frozenset()) & _MAY_SAY_WHERE for word in words)
