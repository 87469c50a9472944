"""Maps phrases of one task to the corresponding phrases of another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher

_TOKEN = re.compile(r"-?\d+\.\d+|[a-z0-9\-]+|[.,:']")
_FILLING = frozenset("a an the of in on is it to and which then first next place if , . : ' ( )".split())  # noqa: SIM905
_LONGEST = 5  # largest number of words in a phrase
ALIKE = 0.5  # if two texts share less than this, their words cannot be mapped


def mapped_phrases(old: str, new: str) -> dict[str, str]:
    """Map phrases of ``old`` to those that ``new`` has in their place; empty if the texts have too little in common.

    A phrase includes the word that follows in both texts, so that "red box" and "red wire" are distinguished.

    >>> mapped_phrases("Put the thing into the red box.", "Put the thing into the green box.")
    {'red box': 'green box'}
    """
    before, after = _TOKEN.findall(old.lower()), _TOKEN.findall(new.lower())
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < ALIKE:
        return {}
    phrases: dict[str, str] = {}
    for kind, i, end, j, stop in matcher.get_opcodes():
        if kind != "replace":
            continue
        follows = before[end : end + 1]
        if follows == after[stop : stop + 1] and not _FILLING.issuperset(follows):
            end, stop = end + 1, stop + 1
        gone, come = _stripped(before[i:end]), _stripped(after[j:stop])
        if gone and come and max(len(gone), len(come)) <= _LONGEST + 1 and gone != come:
            phrases.setdefault(" ".join(gone), " ".join(come))
    return phrases


def _stripped(words: list[str]) -> list[str]:
    kept = [i for i, word in enumerate(words) if word not in _FILLING]
    return words[kept[0] : kept[-1] + 1] if kept else []


def substituted(text: str, phrases: Mapping[str, str]) -> str:
    """Replace whole phrases in a text, the longest first.

    >>> substituted("move cup to red box", {"red box": "blue box", "red": "green"})
    'move cup to blue box'
    """
    if not phrases:
        return text
    longest_first = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.sub(rf"(?<![a-z0-9])({longest_first})(?![a-z0-9])", lambda found: phrases[found[1]], text)
