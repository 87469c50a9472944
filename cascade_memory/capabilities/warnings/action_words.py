"""Finds the words of an action, by which a mistake is recognised when it is about to be made again.

Some words name a table, or another place: those that follow words such as "from". ``SELECT name FROM country`` fails if there
is no table ``country``; ``SELECT country FROM singer`` does not repeat this mistake. And if ``SELECT age FROM breeds`` fails
because ``breeds`` has no column ``age``, this says nothing about ``SELECT age FROM teacher`` in another database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from cascade_memory.domain.trajectory import Step

_SAYS_WHERE = frozenset(["from", "into", "join"])
_MAY_SAY_WHERE = _SAYS_WHERE | frozenset(
    ["at", "describe", "exists", "import", "in", "of", "on", "only", "table", "to", "truncate", "update", "using"]
)
_ENDS_A_LIST = frozenset(["group", "having", "limit", "on", "order", "select", "set", "union", "using", "values", "where"])
_ARTICLES = frozenset(["a", "an", "the"])
_LISTED = ","  # a word in a list that began after such a word: FROM singer, country
_QUALIFIES = "."  # a word that only says where the next one is: FROM main.country
_PART = re.compile(r"[\w#]+|[,.()]")
WordsBefore = Mapping[str, Set[str]]
_WORD = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
PLACEHOLDER = re.compile(r"\[secret:[^\]\n]{0,60}\]")  # the secret itself never comes again
READ = 20_000  # characters of an action or an observation that are looked at
NUMBER = "#"
MASKED = "*"
# Words that name no thing.
COMMON = frozenset(
    [
        "a",
        "all",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "can't",
        "cannot",
        "could",
        "did",
        "do",
        "does",
        "error",
        "failed",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "invalid",
        "is",
        "it",
        "its",
        "name",
        "no",
        "not",
        "nothing",
        "of",
        "on",
        "or",
        "so",
        "such",
        "t",
        "that",
        "the",
        "there",
        "this",
        "to",
        "unknown",
        "use",
        "was",
        "were",
        "with",
        "you",
        "your",
    ]
)


def words_before(texts: Iterable[str]) -> WordsBefore:
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
        _words_read(PLACEHOLDER.sub(" ", text[:left]).lower(), found)
        left = max(0, left - len(text))
    return found


def _words_read(text: str, found: dict[str, set[str]]) -> None:
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


def tables_in(before: WordsBefore) -> frozenset[str]:
    """Return the words that stand after "from", "into" or "join" in an action, and nowhere else.

    >>> sorted(tables_in(words_before(["SELECT s.name FROM shop AS s JOIN staff AS t ON s.id = t.shop"])))
    ['staff']
    """
    return frozenset(word for word, them in before.items() if them and them <= _SAYS_WHERE)


def may_be_tables(words: Iterable[str], before: WordsBefore) -> bool:
    """Say whether each of the words may name a table in another action.

    >>> before = words_before(["SELECT T1.country FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer"])
    >>> may_be_tables({"country"}, before), may_be_tables({"singer", "song"}, before)
    (False, True)
    """
    return all(before.get(word, frozenset()) & (_MAY_SAY_WHERE | {_LISTED}) for word in words)


def said_by(step: Step) -> str:
    """Return what distinguishes an action from others of the same tool: the texts in its arguments, or else the action.

    >>> said_by(Step(tool="search", arguments={"q": "Turing", "k": 3})), said_by(Step(action="go north"))
    ('Turing', 'go north')
    """
    if step.arguments:
        return said_in(step.arguments)
    if step.tool is not None and step.action.startswith(f"{step.tool}("):
        return step.action[len(step.tool) : READ]
    return step.action[:READ]


def said_in(value: Any) -> str:
    r"""Return the texts in an argument, or in all of them, as one text.

    >>> said_in({"q": "Turing", "in": ["books", "films"], "k": 3})
    'Turing\nbooks\nfilms'
    """
    return "\n".join(texts_in(value))[:READ]


def texts_in(value: Any) -> list[str]:
    """Return the texts in an argument, or in all of them.

    >>> texts_in({"q": "Turing", "in": ["books", "films"], "k": 3})
    ['Turing', 'books', 'films']
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for one in cast("Mapping[str, Any]", value).values() for text in texts_in(one)]
    if isinstance(value, (list, tuple)):
        return [text for one in cast("Sequence[Any]", value) for text in texts_in(one)]
    return []


def words_in(text: str) -> list[str]:
    """Return the words of a text, in lower case and with their digits masked.

    >>> words_in("Take mug 3 FROM shelf_12")
    ['take', 'mug', '#', 'from', 'shelf_#']
    """
    if "[secret:" in text:
        text = PLACEHOLDER.sub(" ", text)
    return [_DIGITS.sub(NUMBER, word) for word in _WORD.findall(text[:READ].lower())]


def shape_of(step: Step, own: Collection[str] = ()) -> tuple[str, ...]:
    """Return the tool and the words of an action; words in ``own``, which only its own task gives, are masked.

    >>> shape_of(Step(action="heat mug 3"), own={"mug"})
    ('', 'heat', '*', '#')
    """
    return (step.tool or "", *(MASKED if word in own else word for word in words_in(said_by(step))))


def is_same_mistake(words: Collection[str], tool: str | None, step: Step) -> bool:
    """Say whether an action has the tool and all words of a mistake.

    >>> is_same_mistake(("nme",), "sql", Step(tool="sql", arguments={"q": "SELECT nme, age FROM t"}))
    True
    """
    return step.tool == tool and set(words) <= set(words_in(said_by(step)))
