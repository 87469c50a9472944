"""The questions, and the comparison of answers with the labels."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path


def questions(path: Path) -> dict[str, str]:
    """Return the questions in the file's order, each with its answer."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["task"]: row["label"] for row in rows}


def is_right(answer: str, label: str) -> bool:
    """Say whether an answer matches the label, up to spelling. A longer form of a name does; an essay or half a date does not.

    >>> is_right("Southampton", "Southampton, Hampshire"), is_right("She is from Denmark", "Denmark"), is_right("Yes.", "yes")
    (True, True, True)
    >>> is_right("I have no idea", "no"), is_right("no", "Norodom Sutharot"), is_right("June", "5 June 1920")
    (False, False, False)
    """
    given, wanted = plain(answer).split(), plain(label).split()
    if wanted in (["yes"], ["no"]):
        return given[:1] == wanted
    if not given or len(given) > 12:
        return False
    if label[-4:].isdigit():  # a date: all of its parts, in any order
        return set(wanted) <= set(given)
    return within(wanted, given) or (len("".join(given)) > 3 and within(given, wanted))


def within(some: list[str], words: list[str]) -> bool:
    """Say whether the words of one list occur in another, one directly after the other."""
    return any(words[start : start + len(some)] == some for start in range(len(words) - len(some) + 1))


def plain(text: str) -> str:
    """Return a text without case, accents, punctuation and articles."""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(word for word in re.findall(r"\w+", bare.casefold()) if word not in {"a", "an", "the"})
