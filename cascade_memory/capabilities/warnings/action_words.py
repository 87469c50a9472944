"""Finds the words of an action, by which a mistake is recognised when it is about to be made again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from cascade_memory.domain.trajectory import Step

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
