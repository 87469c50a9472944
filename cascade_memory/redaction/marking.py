"""Puts placeholders in the places of secrets."""

from __future__ import annotations

import re
from collections import Counter

from cascade_memory.redaction.finding import Found, find
from cascade_memory.redaction.kinds import PRIVATE_KEY
from cascade_memory.visible import shortened

_MARK = re.compile(r"\[secret:([a-z0-9-]{2,40})#([0-9]{1,6})\]")
_BREAKS = re.compile(r"\s|\\+[nr]|%0[AaDd]")
_ROUNDS = 4
_KNOWN, _TELLING = 32, 8  # secrets that are also looked for without their sign, and the characters that such a one must have


class Marks:
    """The placeholders of one record: the same secret gets the same one, and no two secrets share one.

    A number says which one it is within its record. It is counted, and says nothing about the secret.
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._kinds: list[str] = []

    @property
    def any(self) -> bool:
        """Whether a secret was found."""
        return bool(self._kinds)

    @property
    def found(self) -> Counter[str]:
        """How many different secrets of each kind were found."""
        return Counter(self._kinds)

    def mark(self, text: str) -> str:
        """Return a text with placeholders; the text itself if it holds no secret."""
        for _ in range(_ROUNDS):
            found = find(text)
            marked = self._marked(text, found) if found else text
            clean = self.again(marked)
            # Where secrets touch each other, one may be seen only when the other is gone.
            done = clean == marked and not any(_touches(text, one) for one in found)
            text = clean
            if done:
                break
        return text

    def _marked(self, text: str, found: list[Found]) -> str:
        self._note_used(text)
        parts, at = list[str](), 0
        for one in found:
            parts += [text[at : one.start], self._of(text[one.start : one.end], one.kind)]
            at = one.end
        return "".join([*parts, text[at:]])

    def again(self, text: str) -> str:
        """Return a text in which secrets that are known by now have placeholders, whatever stands before them."""
        for secret, mark in self._known.items():
            if secret in text:
                text = text.replace(secret, mark)
        return text

    def whole(self, secret: str, kind: str) -> str:
        """Return the placeholder for a text that is a secret as a whole."""
        return self._of(secret, kind)

    def _of(self, secret: str, kind: str) -> str:
        same = _BREAKS.sub("", secret) if kind == PRIVATE_KEY else secret
        mark = self._given.get(same)
        if mark is None:
            self._count[kind] = self._count.get(kind, 0) + 1
            self._kinds.append(kind)
            mark = self._given[same] = f"[secret:{kind}#{self._count[kind]}]"
            if len(secret) >= _TELLING and len(self._known) < _KNOWN and any(one.isdigit() for one in secret):
                self._known[secret] = mark
        return mark

    def _note_used(self, text: str) -> None:
        """Count on after the numbers that a text has already: it was stored before, and its secrets are gone."""
        if "[secret:" in text:
            for kind, number in _MARK.findall(text):
                self._count[kind] = max(self._count.get(kind, 0), int(number))


def _touches(text: str, one: Found) -> bool:
    return text[one.end : one.end + 1].isalnum() or text[max(0, one.start - 1) : one.start].isalnum()


def cut_short(text: str, limit: int) -> str:
    """Shorten a text that is too long. Its secrets are taken out first: nobody would recognise one that was cut through."""
    return text if len(text) <= limit else shortened(redact_secrets(text), limit)


def redact_secrets(text: str) -> str:
    """Return a text in which each secret is a placeholder; its number tells the secrets of one text apart.

    >>> redact_secrets("log in with password=Tr0ub4dor, then again with password=Tr0ub4dor")
    'log in with password=[secret:password#1], then again with password=[secret:password#1]'
    """
    return Marks().mark(text)
