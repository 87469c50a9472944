"""Decides who may look: a random token in the first link is traded once for a cookie that only this site receives."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass

from cascade_memory.redaction import log_of

_log = log_of(__name__)
_HOURS = 12.0  # after which a person has to come in again
_MOST_SESSIONS = 256
_MOST_LINKS = 16  # links that were given out and not used yet
_MANY_WRONG = 10  # wrong tokens within a minute, of which an operator should know
MOST_NAME = 100  # characters
_COOKIE = re.compile(r"[A-Za-z0-9_-]{20,100}")


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who came in: the name under which their actions are recorded, and until when they may stay."""

    actor: str
    until: float


def form_token(cookie: str) -> str:
    """Derive from the cookie the token that every form must contain; no page of another site can read the cookie.

    >>> form_token("a") == form_token("a") != form_token("b")
    True
    """
    return hashlib.blake2b(cookie.encode(), digest_size=16, person=b"cascade-form").hexdigest()


def cookie_of(headers: dict[bytes, bytes], name: str) -> str | None:
    """Return the value of a cookie; None if it was not sent."""
    for one in headers.get(b"cookie", b"").decode("latin-1").split(";"):  # whatever others have set on this host
        key, _, value = one.strip().partition("=")
        if key == name and _COOKIE.fullmatch(value):
            return value
    return None


class Sessions:
    """The links that were given out, and the people who came in. Everything is in RAM: it ends with the process.

    Args:
        actor: The name of whoever comes in by a link.
        token: A token that people enter themselves, with their names; None: they come in by links only.
    """

    def __init__(self, *, actor: str, token: str | None = None) -> None:
        self._actor, self._token = actor, None if token is None else token.encode()
        self._lock = threading.Lock()
        self._links: OrderedDict[str, None] = OrderedDict()
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._wrong = deque[float](maxlen=_MANY_WRONG)  # when wrong tokens were entered

    @property
    def takes_token(self) -> bool:
        """Whether people can enter a token themselves."""
        return self._token is not None

    def new_link(self) -> str:
        """Return a token for a link that lets one person in, once."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest(token)] = None
            while len(self._links) > _MOST_LINKS:
                self._links.popitem(last=False)
        return token

    def follow(self, token: str) -> str | None:
        """Trade the token of a link for a new cookie; None if it is unknown or was used before."""
        with self._lock:
            # A digest is looked up, so how long this takes says nothing about the tokens.
            if _digest(token) not in self._links:
                return None
            del self._links[_digest(token)]
            return self._come_in(self._actor)

    def enter(self, token: str, name: str) -> str | None:
        """Return a cookie for a person who knows the token, and record their name; return None if the token is wrong.

        The right token is accepted, however many wrong ones were entered before: nobody can lock others out. So only its length
        keeps the token from being guessed.
        """
        if self._token is None or not hmac.compare_digest(token.encode(), self._token):
            self._note_wrong(time.monotonic())
            return None
        with self._lock:
            return self._come_in(name)

    def _note_wrong(self, now: float) -> None:
        with self._lock:
            self._wrong.append(now)
            many = len(self._wrong) == _MANY_WRONG and self._wrong[0] > now - 60.0
            if many:
                self._wrong.clear()
        if many:
            _log.warning("somebody guesses: %d wrong tokens were entered in the inspector within a minute", _MANY_WRONG)

    def visit(self, cookie: str | None) -> Visit | None:
        """Return the visit to which this cookie belongs; None if there is none, or if its time is over."""
        if cookie is None:
            return None
        with self._lock:
            found = self._visits.get(_digest(cookie))
        return None if found is None or found.until < time.monotonic() else found

    def _come_in(self, actor: str) -> str:
        cookie = secrets.token_urlsafe(32)
        self._visits[_digest(cookie)] = Visit(actor, time.monotonic() + 3_600.0 * _HOURS)
        while len(self._visits) > _MOST_SESSIONS:
            self._visits.popitem(last=False)
        return cookie


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=32).hexdigest()
