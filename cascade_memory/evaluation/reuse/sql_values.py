"""Replaces the values in a query by those in another question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from cascade_memory.evaluation.reuse.sql_text import Token

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(number) for number, word in enumerate(_DIGITS)}
_QUOTED = re.compile(r""""([^"]+)"|'([^']+)'(?!\w)""")
_CAPITALISED = re.compile(r"(?<=[\w,] )[A-Z][\w.-]*\w(?: [A-Z][\w.-]*\w)*")
Values = Callable[[str, str], Sequence[str]]  # (table, column) -> its values


def revalued(tokens: Sequence[Token], old: str, new: str, values: Values) -> list[Token]:
    """Return a query with the numbers and texts of another question.

    A value stays if the old question does not contain it, or if the new one contains it too. Any other number is replaced by
    the next number in the new question. Any other text is replaced by a value of its column that the new question contains,
    or otherwise by the next name in the new question.
    """
    numbers = iter([number for number in numbers_in(new) if number not in numbers_in(old)])
    names = iter([name for name in names_in(new) if not _says(old, name)])
    gone = set(numbers_in(old)) - set(numbers_in(new))
    written: list[Token] = []
    for place, token in enumerate(tokens):
        if token.role == "number" and token.text in gone:
            written.append(replace(token, text=next(numbers, token.text)))
        elif token.role == "text" and (bare := token.text[1:-1].strip("%")) and _says(old, bare) and not _says(new, bare):
            column = _column(tokens, place)
            stored = values(column.table, column.column) if column is not None else ()
            named = [value for value in stored if _says(new, value) and not _says(old, value)]
            value = max(named, key=len) if named else next(names, bare)
            written.append(replace(token, text="'" + token.text[1:-1].replace(bare, value).replace("'", "''") + "'"))
        else:
            written.append(token)
    return written


def _says(question: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", question, re.IGNORECASE) is not None


def _column(tokens: Sequence[Token], place: int) -> Token | None:
    """Return the column that a value is compared with: the nearest one before it."""
    return next((token for token in reversed(tokens[max(0, place - 6) : place]) if token.role == "column"), None)


def numbers_in(question: str) -> list[str]:
    """Find the numbers in a question.

    >>> numbers_in("Which three singers are older than 20?")
    ['3', '20']
    """
    found = [match.group() for match in re.finditer(r"\d+(?:\.\d+)?|[a-z]+", question.lower())]
    return [_NUMBERS.get(word) or word for word in found if word in _NUMBERS or word[0].isdigit()]


def names_in(question: str) -> list[str]:
    """Find the quoted texts in a question, and capitalised words that do not begin a sentence.

    >>> names_in('Who from New York sings "Love"? Does Ann?')
    ['Love', 'New York', 'Ann']
    """
    quoted = [found.group()[1:-1] for found in _QUOTED.finditer(question)]
    return quoted + [found.group() for found in _CAPITALISED.finditer(_QUOTED.sub("", question))]
