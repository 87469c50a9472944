"""Finds the words of an action that name a table, or another place: those that follow words such as "from".

``SELECT name FROM country`` fails if there is no table ``country``; ``SELECT country FROM singer`` does not repeat this
mistake. And if ``SELECT age FROM breeds`` fails because ``breeds`` has no column ``age``, this says nothing about
``SELECT age FROM teacher`` in another database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

from cascade_memory.capabilities.warnings.action_words import PLACEHOLDER, READ, words_in

_SAYS_WHERE = frozenset(["from", "into", "join"])
_MAY_SAY_WHERE = _SAYS_WHERE | frozenset(
    ["at", "describe", "exists", "import", "in", "of", "on", "only", "table", "to", "truncate", "update", "using"]
)
_ENDS_A_LIST = frozenset(["group", "having", "limit", "on", "order", "select", "set", "union", "using", "values", "where"])
_ARTICLES = frozenset(["a", "an", "the"])
_LISTED = ","  # a word in a list that began after such a word: FROM singer, country
_QUALIFIES = "."  # a word that only says where the next one is: FROM main.country
_PART = re.compile(r"[\w#]+|[,.()]")

Before = Mapping[str, Set[str]]


def words_before(texts: Iterable[str]) -> Before:
    """Return, for each word of some texts, the words that it follows; articles do not count.

    The mark "," says that it also continues a list of tables, and "." that it only qualifies the next word.

    >>> sorted(words_before(["take cup 1 from the shelf"])["shelf"]), words_before(["take cup"])["take"]
    (['from'], set())
    >>> sorted(words_before(["SELECT 1 FROM singer, main.country WHERE a IN (1, 2)"])["country"])
    [',', 'singer']
    """
    found: dict[str, set[str]] = {}
    left = READ
    for text in texts:
        _read(PLACEHOLDER.sub(" ", text[:left]).lower(), found)
        left = max(0, left - len(text))
    return found


def _read(text: str, found: dict[str, set[str]]) -> None:
    last, of_last, mark, listing = "", set[str](), "", False
    for part in _PART.findall(text):
        if part in ",.()":
            mark, listing = part, listing and part not in "()"
            continue
        word = next(iter(words_in(part)), part)
        if word in _ARTICLES:
            continue
        listing = (listing or last in _SAYS_WHERE) and word not in _ENDS_A_LIST
        before = {last} if last else set[str]()
        if mark == "." and of_last & {*_SAYS_WHERE, _LISTED}:
            before = set(of_last)
            found[last].add(_QUALIFIES)
        elif mark == "," and listing:
            before.add(_LISTED)
        found.setdefault(word, set()).update(before)
        last, of_last, mark = word, before, ""


def tables_in(before: Before) -> frozenset[str]:
    """Return the words that stand after "from", "into" or "join" in an action, and nowhere else.

    >>> sorted(tables_in(words_before(["SELECT s.name FROM shop AS s JOIN staff AS t ON s.id = t.shop"])))
    ['staff']
    """
    return frozenset(word for word, them in before.items() if them and them <= _SAYS_WHERE)


def may_be_tables(words: Iterable[str], before: Before) -> bool:
    """Say whether each of the words may name a table in another action.

    >>> before = words_before(["SELECT T1.country FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer"])
    >>> may_be_tables({"country"}, before), may_be_tables({"singer", "song"}, before)
    (False, True)
    """
    return all(before.get(word, frozenset()) & (_MAY_SAY_WHERE | {_LISTED}) for word in words)
