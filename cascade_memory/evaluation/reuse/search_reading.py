"""Reads names from a question and facts from a passage, with patterns: what a language model does by understanding them."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from datetime import date

from cascade_memory.evaluation.judging.short_answers import plain
from cascade_memory.evaluation.search.passages import Passage

_MONTHS = list(calendar.month_name)[1:]
_MONTH = "|".join(_MONTHS)
_NAME = r"([A-Z][\w.'’-]*(?: (?:of|the|de|von|van|mac|bin|zu|al|[A-Z(][\w.'’)-]*|[IVX]+))*)"
_PLACE = rf"(?:[^.()]*? )?(?:in|at) (?:the )?(?!\d|{_MONTH}){_NAME}"
_CHILD_OF = r"(?:son|daughter|child) of"
_DATE = re.compile(rf"(?:(\d{{1,2}}) )?(?:({_MONTH}) )?(?:(\d{{1,2}}),? )?(\d{{3,4}})\b")
_ABOUT = re.compile(r"\(([^()]*\d{3,4}[^()]*)\)")
_FACTS = {
    "director": (rf"[Dd]irected by {_NAME}", rf"film(?:maker)? director (?:and producer )?{_NAME}", rf"edited by {_NAME}"),
    "performer": (
        rf"(?:performed|recorded|released|song) by [^.]*?(?:singer|artist|rapper|musician|band|group) {_NAME}",
        rf"(?:performed|recorded|song|single) by {_NAME}",
    ),
    "composer": (rf"(?:[Mm]usic|[Ss]core)[^.]*? by {_NAME}", rf"[Cc]omposed by {_NAME}", rf"written by {_NAME}"),
    "father": (rf"{_CHILD_OF} (?:the )?(?:[a-z]+ )*{_NAME}", rf"father,? (?:was )?{_NAME}"),
    "mother": (rf"{_CHILD_OF} [^.]*? and (?:his wife,? |[a-z]+ )*{_NAME}", rf"mother,? (?:was )?{_NAME}"),
    "spouse": (
        rf"(?:wife|husband|widow|spouse|consort)(?: of|,| was)? {_NAME}",
        rf"[Mm]arried (?:to )?(?:[a-z]+ )*{_NAME}",
    ),
    "child": (
        rf"(?:father|mother) (?:of|to) (?:the )?(?:[a-z]+ )*{_NAME}",
        rf"(?:son|daughter)s?(?: was|,)? (?:the )?(?:[a-z]+ )*{_NAME}",
    ),
    "birth place": (rf"[Bb]orn {_PLACE}",),
    "death place": (rf"(?:died|assassinated|killed|buried) {_PLACE}",),
    "country": (r"\b(?:is|was)(?: an?| the)? (?:[a-z\d-]+ )*([A-Z][a-z]+)", r"\b(?:in|of|from) ([A-Z][a-z]+)\."),
    "release": (r"\b(1[89]\d\d|20\d\d)\b",),
}


def names(question: str) -> list[str]:
    """Return the names in a question: groups of words that do not begin with a small letter.

    >>> names("Who is older, Cheryl Saban or Dmitry Grigorieff?"), names("Who is Mugain's mother-in-law?")
    (['Cheryl Saban', 'Dmitry Grigorieff'], ['Mugain'])
    """
    _, _, rest = question.rstrip("?").partition(" ")
    runs = re.split(r"(?:^| )[a-zé][^ ]*(?: [a-zé][^ ]*)*(?: |$)", rest)
    return [name for name in (re.sub(r"['’]s$", "", run.strip(" ,")) for run in runs) if name]


def about(name: str, found: Sequence[Passage]) -> Passage | None:
    """Return the passage with this name as its title. If there is none, return the best passage."""
    same = [passage for passage in found if plain(passage.title) == plain(name)]
    return next(iter(same or found), None)


def fact(asked: str, passage: Passage) -> str:
    """Read the fact ``asked``, such as "birth place", from a passage; return an empty text if the passage does not have it."""
    if asked in ("birth date", "death date", "life span"):
        return _life(asked, passage.text)
    for pattern in _FACTS[asked]:
        if match := re.search(pattern, passage.text):
            return match[1].strip(" .,")
    return ""


def when(text: str) -> date | None:
    """Return the day of a date in words. A missing month is taken as January, a missing day as the first.

    >>> when("20 March 851"), when("December 8, 1982")
    (datetime.date(851, 3, 20), datetime.date(1982, 12, 8))
    """
    match = _DATE.search(text)
    if match is None or not int(match[4]):
        return None
    try:
        return date(int(match[4]), _MONTHS.index(match[2]) + 1 if match[2] else 1, int(match[1] or match[3] or 1))
    except ValueError:
        return None


def _life(asked: str, text: str) -> str:
    for span in _ABOUT.findall(text):
        dates = [match[0].strip() for match in _DATE.finditer(span)]
        if re.search(r"\b(died|d\.)", span):
            dates = ["", *dates]
        if asked == "life span" and len(dates) > 1:
            first, last = when(dates[0]), when(dates[-1])
            return str((last - first).days) if first and last else ""
        if asked == "birth date" and dates[0]:
            return dates[0]
        if asked == "death date" and len(dates) > 1:
            return dates[-1]
    return ""


def agrees(answer: str, label: str) -> bool:
    """Say whether an answer that was read in a passage agrees with the label; it may be a longer or a shorter form of a name.

    Use this only for answers that patterns cut out. A model could write several names, so its answers are judged by
    ``short_answer``.

    >>> agrees("Southampton", "Southampton, Hampshire"), agrees("She is from Denmark", "Denmark"), agrees("Yes.", "yes")
    (True, True, True)
    >>> agrees("I have no idea", "no"), agrees("no", "Norodom Sutharot"), agrees("June", "5 June 1920")
    (False, False, False)
    """
    given, wanted = plain(answer).split(), plain(label).split()
    if wanted in (["yes"], ["no"]):
        return given[:1] == wanted
    if not given or len(given) > 12:
        return False
    if label[-4:].isdigit():  # a date: all of its parts, in any order
        return set(wanted) <= set(given)
    return _within(wanted, given) or (len("".join(given)) > 3 and _within(given, wanted))


def _within(some: list[str], words: list[str]) -> bool:
    """Say whether the words of one list occur in another, one directly after the other."""
    return any(words[start : start + len(some)] == some for start in range(len(words) - len(some) + 1))
