"""Puts placeholders in the places of secrets, and remembers the secrets of an episode for its later calls.

A solution may repeat a secret of the task. A secret is *announced* if a text says what it is (``password: x``); a later text
may contain only the ``x``. So the secrets of an episode are kept, only in RAM, by the process that was given them, for a
limited number of episodes and a limited time.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, OrderedDict

from cascade_memory.redaction.finding import Found, find
from cascade_memory.redaction.kinds import KINDS, PRIVATE_KEY
from cascade_memory.visible import shortened

_MARK = re.compile(r"\[secret:([a-z0-9-]{2,40})#([0-9]{1,6})\]")
_BREAKS = re.compile(r"\s|\\+[nr]|%0[AaDd]")
_ROUNDS = 4
_KNOWN = 256  # secrets of a record that are also looked for without their sign: each costs a search in every text
_TELLING, _SHORT = 8, 6  # characters of such a secret; a short one must have more kinds of them
_SPACES = 3  # in a sequence of words that is hardly written twice by chance
_DIGIT, _LOWER, _UPPER = (re.compile(one) for one in ("[0-9]", "[a-z]", "[A-Z]"))
_INNER_CAPITAL = re.compile("[a-z0-9][A-Z]")
_SIGN = re.compile(r"[^\w\s.,'\u2019/-]")  # and none that stands in or after a word of ordinary prose
_NUMBER, _ALL_MARKS = re.compile("#[0-9]+"), " ".join(f"[secret:{kind}#]" for kind in KINDS)
_EPISODES, _SECONDS = 1_024, 86_400.0


class Marks:
    """The placeholders of one record: the same secret always gets the same placeholder, and no two secrets share one.

    The number in a placeholder only counts the secrets of the record, and says nothing about the secret. Several threads may
    use the marks of an episode at the same time.
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._count: dict[str, int] = {}
        # Secret, mark; the longest first, since one may be a part of another. Replaced, never changed: somebody may read it.
        self._known: tuple[tuple[str, str], ...] = ()
        self._kinds: list[str] = []
        self._changing = threading.Lock()

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
        for _ in range(_ROUNDS):  # a secret may be seen only when the one beside it is gone
            found = find(text)
            clean = self.again(self._marked(text, found) if found else text)
            if clean == text:
                break
            text = clean
        return text

    def _marked(self, text: str, found: list[Found]) -> str:
        self.note_used(text)
        parts, at = list[str](), 0
        for one in found:
            parts += [text[at : one.start], self._of(text[one.start : one.end], one.kind)]
            at = one.end
        return "".join([*parts, text[at:]])

    def again(self, text: str) -> str:
        """Return a text in which secrets that are known by now have placeholders, whatever stands before them."""
        for secret, mark in self._known:
            if secret in text:
                text = text.replace(secret, mark)
        return text

    def marked_again(self, text: str) -> str:
        """Replace the known secrets in a text by placeholders, and then the secrets that only become visible by that."""
        clean = self.again(text)
        return text if clean == text else self.mark(clean)

    def whole(self, secret: str, kind: str) -> str:
        """Return the placeholder for a text that is a secret as a whole."""
        return self._of(secret, kind)

    def of(self, text: str) -> str | None:
        """Return the placeholder of a text that is a known and unmistakable secret; None if it is not."""
        return next((mark for secret, mark in self._known if secret == text), None)

    def _of(self, secret: str, kind: str) -> str:
        same = _BREAKS.sub("", secret) if kind == PRIVATE_KEY else secret
        mark = self._given.get(same)
        return self._new(secret, same, kind) if mark is None else mark

    def _new(self, secret: str, same: str, kind: str) -> str:
        with self._changing:
            if (mark := self._given.get(same)) is not None:
                return mark
            self._count[kind] = self._count.get(kind, 0) + 1
            self._kinds.append(kind)
            mark = self._given[same] = f"[secret:{kind}#{self._count[kind]}]"
            if len(self._known) < _KNOWN and _is_telling(secret):
                self._known = tuple(sorted([*self._known, (secret, mark)], key=lambda one: -len(one[0])))
            return mark

    def note_used(self, text: str) -> None:
        """Let new placeholders get higher numbers than those in this text, which was stored before."""
        if "[secret:" in text:
            with self._changing:
                for kind, number in _MARK.findall(text):
                    self._count[kind] = max(self._count.get(kind, 0), int(number))


def _is_telling(secret: str) -> bool:
    """Say whether a secret is recognisable without what announced it: it is unlike ordinary words and parts of placeholders."""
    if len(secret) < _SHORT or _NUMBER.sub("#", secret) in _ALL_MARKS:
        return False
    digit, sign, capital = _DIGIT.search(secret), _SIGN.search(secret), _INNER_CAPITAL.search(secret)
    if len(secret) >= _TELLING:
        return bool(digit or sign or capital) or secret.count(" ") >= _SPACES
    return bool(digit and (sign or (_LOWER.search(secret) and _UPPER.search(secret))))


def marks_in(text: str) -> set[tuple[str, str]]:
    """Return the kinds and numbers of the placeholders in a text."""
    return set(_MARK.findall(text))


def cut_short(text: str, limit: int) -> str:
    """Shorten a text that is too long. Its secrets are taken out first: nobody would recognise one that was cut through."""
    return text if len(text) <= limit else shortened(redact_secrets(text), limit)


def redact_secrets(text: str) -> str:
    """Return a text in which each secret is a placeholder; its number tells the secrets of one text apart.

    >>> redact_secrets("log in with password=Tr0ub4dor, then again with password=Tr0ub4dor")
    'log in with password=[secret:password#1], then again with password=[secret:password#1]'
    """
    return Marks().mark(text)


class OpenSecrets:
    """The placeholders (``Marks``) of the episodes in which a secret was announced lately; most episodes have none."""

    def __init__(self, most: int = _EPISODES) -> None:
        self._most = most
        self.held: OrderedDict[str, tuple[float, Marks]] = OrderedDict()  # with the time; the latest is the last one
        self._changing = threading.Lock()

    def of(self, episode_id: str) -> Marks | None:
        """Return the placeholders of an episode; None if no secret was announced in it lately."""
        found = self.held.get(episode_id)
        return None if found is None or found[0] < time.monotonic() - _SECONDS else found[1]

    def keep(self, episode_id: str, marks: Marks) -> None:
        """Keep the placeholders of an episode; drop the oldest ones if there are too many, or if they are too old."""
        now = time.monotonic()
        with self._changing:
            self.held[episode_id] = (now, marks)
            self.held.move_to_end(episode_id)
            while len(self.held) > self._most or next(iter(self.held.values()))[0] < now - _SECONDS:
                self.held.popitem(last=False)

    def again(self, text: str) -> str:
        """Return a text without the secrets of any remembered episode: an error message may quote any text."""
        if self.held:
            with self._changing:
                known = [marks for _, marks in self.held.values()]
            for marks in known:
                text = marks.again(text)
        return text

    def forget(self) -> None:
        """Forget everything."""
        with self._changing:
            self.held.clear()
