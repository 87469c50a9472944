"""Compares short answers: names, places, dates, yes or no."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Sequence

from cascade_memory.evaluation.judging.answers import answer_in

_LONGEST = 1_000  # characters of an answer that is compared; a longer one is not a short answer
_INTRODUCTION = re.compile(r"^\W*(?:final )?answer\W*:\s*", re.IGNORECASE)
_MONTHS = frozenset(month.casefold() for month in calendar.month_name if month)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def short_answer(reply: str, right: Sequence[str]) -> float:
    r"""Reward a reply that is one of the right answers and nothing more.

    Capitals, accents and punctuation do not matter, nor does the order in a date.

    >>> short_answer("The Netherlands.", ["Netherlands"]), short_answer("Answer: March 20, 851", ["20 March 851"])
    (1.0, 1.0)
    >>> short_answer("Paris or London", ["Paris"]), short_answer("", ["Paris"])
    (0.0, 0.0)
    """
    given = answer_in(reply).strip()
    if len(given) > _LONGEST:
        return 0.0
    words = _words(_INTRODUCTION.sub("", given))
    return float(bool(words) and any(words == _words(one) for one in right))


def plain(text: str) -> str:
    """Return a text without case, accents, punctuation and articles.

    >>> plain("The Café-Concert!")
    'cafe concert'
    """
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(word for word in re.findall(r"\w+", bare.casefold()) if word not in {"a", "an", "the"})


def _words(text: str) -> list[str]:
    words = plain(text).split()
    if len(words) <= 3 and any(word in _MONTHS for word in words):  # a date: "20 March 851" is "March 20, 851"
        return sorted(_ORDINAL.sub(r"\1", word) for word in words)
    return words
