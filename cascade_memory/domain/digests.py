"""Hashes of texts, and signed tokens.

Equal texts have equal hashes, and nobody can find two texts with the same hash. A signed token is a short text that only the
owner of the key can make. It is valid for one purpose and until one moment.

A token says by two clocks how long it is valid: by the wall clock, which somebody may set back, and by the running time of the
memory, which stands still while nobody uses the memory. It is valid until the first of the two times is reached.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cascade_memory.domain.trajectory import Solution, solution_text

_TIME, _MARK = 6, 24  # bytes of a time in milliseconds, and of the signature
_LATEST = 256**_TIME - 1
_CHARS = 4 * (2 * _TIME + _MARK) // 3


def digest(text: str) -> str:
    """Hash a text to 32 hexadecimal digits.

    >>> digest("press reset") == digest("press reset"), len(digest(""))
    (True, 32)
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def pair_key(query: str, solution: Solution) -> str:
    """Hash a query together with its solution, to recognise the same pair again."""
    return digest(f"{query}\x00{type(solution).__name__}\x00{solution_text(solution)}")


class Times(NamedTuple):
    """A moment by both clocks, in seconds."""

    wall: float
    running: float

    def after(self, seconds: float) -> Times:
        """Return the moment so many seconds later."""
        return Times(self.wall + seconds, self.running + seconds)


@dataclass(frozen=True, slots=True)
class Signed:
    """What a token with a valid signature says. ``mark`` identifies the token, and does not reveal it."""

    until: Times
    mark: str

    def is_over(self, now: Times) -> bool:
        """Say whether the token has expired by at least one of the two clocks."""
        return now.wall >= self.until.wall or now.running >= self.until.running


class HasKey(Protocol):
    """What signing needs of a ledger: its secret key, and its running time."""

    def key(self) -> str:
        """Return the key."""
        ...

    def running(self) -> float:
        """Return for how many seconds the memory was in use so far."""
        ...


class Signing:
    """Makes tokens that every process with this ledger can check. The key is read at the first use, and is shown nowhere."""

    def __init__(self, facts: HasKey) -> None:
        self._facts = facts
        self._known: str | None = None

    @property
    def _key(self) -> str:
        if self._known is None:
            self._known = self._facts.key()
        return self._known

    def made(self, purpose: str, about: Sequence[str], *, lasts: float) -> str:
        """Make a token for a purpose and the texts ``about``; it is valid for ``lasts`` seconds."""
        now = Times(time.time(), self._facts.running())
        return sign(self._key, purpose, about, now.after(lasts))

    def read(self, purpose: str, about: Sequence[str], token: object) -> Signed | None:
        """Return what a token says; None if it was altered, or not made with this ledger for this purpose and these texts."""
        return read(self._key, purpose, about, token)


def new_key() -> str:
    """Return a random key."""
    return secrets.token_hex(32)


def is_key(text: object) -> bool:
    """Say whether a text has the form of a key.

    >>> is_key(new_key()), is_key("0" * 63)
    (True, False)
    """
    return isinstance(text, str) and len(text) == 64 and all(char in "0123456789abcdef" for char in text)


def sign(key: str, purpose: str, about: Sequence[str], until: Times) -> str:
    """Make a token that is valid for one purpose, for the texts ``about``, and until a moment.

    >>> key = new_key()
    >>> token = sign(key, "reward", ["episode 1", "default"], Times(100.0, 50.0))
    >>> read(key, "reward", ["episode 1", "default"], token).until
    Times(wall=100.0, running=50.0)
    >>> read(key, "reward", ["episode 2", "default"], token) is None
    True
    """
    times = b"".join(_milliseconds(seconds).to_bytes(_TIME, "big") for seconds in until)
    return base64.urlsafe_b64encode(times + _signature(key, purpose, about, times)).decode()


def read(key: str, purpose: str, about: Sequence[str], token: object) -> Signed | None:
    """Return what a token says; None if its signature is not valid for this purpose and these texts."""
    if not isinstance(token, str) or len(token) != _CHARS or not token.isascii():
        return None
    try:
        raw = base64.urlsafe_b64decode(token)
    except (binascii.Error, ValueError):
        return None
    if base64.urlsafe_b64encode(raw).decode() != token:  # characters that the decoder skips, or takes for others
        return None
    times, given = raw[: 2 * _TIME], raw[2 * _TIME :]
    if not hmac.compare_digest(given, _signature(key, purpose, about, times)):
        return None
    wall, running = (int.from_bytes(part, "big") / 1000 for part in (times[:_TIME], times[_TIME:]))
    mark = hashlib.blake2b(raw, digest_size=16, person=b"cascade-mark").hexdigest()
    return Signed(Times(wall, running), mark)


def _milliseconds(seconds: float) -> int:
    return min(max(int(seconds * 1000), 0), _LATEST)


def _signature(key: str, purpose: str, about: Sequence[str], times: bytes) -> bytes:
    """Sign all parts of a token. The length of each part precedes it, so that different lists of parts give different bytes."""
    signed = hmac.new(key.encode(), digestmod=hashlib.sha256)
    for part in (b"cascade-memory", purpose.encode(), times, *(text.encode("utf-8", "surrogatepass") for text in about)):
        signed.update(len(part).to_bytes(8, "big") + part)
    return signed.digest()[:_MARK]
