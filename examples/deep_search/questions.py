"""The questions, and who judges the answers: the labels, never the agent."""

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
    """Say whether an answer is the label, up to spelling; a longer name of the same thing will do, an essay will not.

    >>> is_right("Southampton", "Southampton, Hampshire"), is_right("Yes.", "yes"), is_right("no", "Norodom Sutharot")
    (True, True, False)
    """
    given, wanted = plain(answer), plain(label)
    if not given or len(given.split()) > 12:
        return False
    return f" {wanted} " in f" {given} " or (len(given) > 3 and f" {given} " in f" {wanted} ")


def plain(text: str) -> str:
    """Return a text without case, accents, punctuation and articles."""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(word for word in re.findall(r"\w+", bare.casefold()) if word not in {"a", "an", "the"})
