"""Finds out which client calls: each client has a token of its own, and its name is recorded with all that it does."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TypeAlias

from cascade_memory.domain.actions import check_actor
from cascade_memory.errors import InvalidInput

# The name of the client of each token (None: it has no name), or the one token of clients without names; None: none is needed.
Tokens: TypeAlias = "str | Mapping[str, str | None] | None"

ASKING: ContextVar[str | None] = ContextVar("cascade_memory_client", default=None)  # the name of the client that calls

_LEAST_CHARS = 16
_CREATE = "create one with: python -c 'import secrets; print(secrets.token_urlsafe())'"


class Clients:
    """The clients that may call, by their tokens.

    >>> clients = Clients({"a-token-of-some-length": "ann"})
    >>> clients.knows(b"Bearer a-token-of-some-length"), clients.knows(b"Bearer another")
    (True, False)
    >>> clients.name_of(b"Bearer a-token-of-some-length")
    'ann'
    """

    def __init__(self, tokens: Tokens) -> None:
        named = {tokens: None} if isinstance(tokens, str) else dict(tokens or {})
        self._clients = [(token.encode(), name) for token, name in named.items()]
        self._is_open = tokens is None

    def knows(self, authorization: bytes) -> bool:
        """Return True if this header has the token of a client, or if the server needs no token."""
        return self._is_open or self._of(authorization) is not None

    def name_of(self, authorization: bytes) -> str | None:
        """Return the name of the client whose token this header has; None if the client has no name or the token is unknown."""
        found = self._of(authorization)
        return None if found is None else self._clients[found][1]

    def _of(self, authorization: bytes) -> int | None:
        """Return the index of the client whose token the header has; None if there is none.

        The token is compared with every known token, so that the time taken does not tell which of them is nearly right.
        """
        kind, _, given = authorization.partition(b" ")
        given, found = given.strip(), None
        for number, (token, _) in enumerate(self._clients):
            if hmac.compare_digest(given, token):
                found = number
        return found if kind.lower() == b"bearer" else None

    def __repr__(self) -> str:
        """Show the names, and no token."""
        return f"Clients({[name for _, name in self._clients]})"


def check_tokens(tokens: Tokens) -> Tokens:
    """Return the tokens; raise ``InvalidInput`` if one is too short to be safe, or if a client's name cannot be recorded."""
    if tokens is None:
        return None
    for token, name in ({tokens: None} if isinstance(tokens, str) else tokens).items():
        check_actor(name)
        if len(token) < _LEAST_CHARS:
            of_whom = "" if name is None else f" of {name!r}"
            raise InvalidInput(f"the token{of_whom} is too short: it needs {_LEAST_CHARS} characters or more; {_CREATE}")
    return tokens


def tokens_in(text: str, where: str) -> dict[str, str | None]:
    r"""Return the name of the client for each token in a text; the name is None if the line has none.

    A line of the text is the name of a client and its token, or the token alone. A client may have several tokens. ``where``
    names the text in error messages.

    >>> tokens_in("# of the agents\nci  a-token-of-some-length\n", "tokens.txt")
    {'a-token-of-some-length': 'ci'}
    """
    found: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise InvalidInput(f"line {number} of {where} has {len(words)} words: a line is a name without spaces, and a token")
        *name, token = words
        if token in found:
            raise InvalidInput(f"line {number} of {where} has a token that an earlier line has: each client needs its own")
        found[token] = name[0] if name else None
    if not found:
        raise InvalidInput(f"there is no token in {where}; {_CREATE}")
    return found
