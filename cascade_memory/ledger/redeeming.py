"""Signed tokens in the ledger: its key, and which tokens were redeemed.

Both are facts in the table ``meta``. They stay in this ledger: a copy, a backup or an export has neither, so it takes no token
that was signed here, and makes a key of its own when it needs one.
"""

from __future__ import annotations

from cascade_memory.domain.digests import Signed, Times, is_key, new_key
from cascade_memory.errors import TicketRefused
from cascade_memory.ledger import running
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.rows import SET_FACT

_PREFIX = "signed:"  # of the names of these facts
KEY = f"{_PREFIX}key"
_SPENT = f"{_PREFIX}spent:"
LET_GO = f"DELETE FROM meta WHERE key LIKE '{_PREFIX}%'"  # for a copy


def is_own(fact: object) -> bool:
    """Say whether a fact belongs to this ledger alone, and not to a copy of it.

    >>> is_own(KEY), is_own("embedder")
    (True, False)
    """
    return isinstance(fact, str) and fact.startswith(_PREFIX)


def key(connection: Connection) -> str | None:
    """Return the ledger's key; None if it has none that can be used."""
    found = fact(connection, KEY)
    return found if is_key(found) else None


def make_key(connection: Connection) -> str:
    """Return the ledger's key, and make one if there is none, inside a transaction that writes: all processes share it."""
    found = key(connection)
    if found is None:
        found = new_key()
        connection.execute(SET_FACT, (KEY, found))
    return found


def redeem(connection: Connection, token: Signed, what: str, *, named: str, wall: float) -> bool:
    """Record, inside the caller's transaction, that a token was redeemed for something (a reward, for example).

    Return False if the token was redeemed for the same thing before. Raise if it was redeemed for something else, or has
    expired. The record is kept until the token has expired by running time: a clock that is set back cannot make the token
    valid again. ``named`` is what an error calls the token; ``wall`` is the time of the wall clock.
    """
    now = running.now(connection)
    if token.is_over(Times(wall, now)):
        raise TicketRefused(f"{named} has expired: only the host can do this now")
    name = f"{_SPENT}{_ordered(token.until.running)}:{token.mark}"
    spent = fact(connection, name)
    if spent is not None:
        if spent == what:
            return False
        raise TicketRefused(f"{named} was redeemed before, for something else: only the host can change that")
    connection.execute("DELETE FROM meta WHERE key > ? AND key < ?", (_SPENT, f"{_SPENT}{_ordered(now)}"))
    connection.execute("INSERT INTO meta VALUES (?, ?)", (name, what))
    return True


def _ordered(seconds: float) -> str:
    """Return a running time as a text; the texts sort in the order of the times."""
    return f"{round(seconds * 1000):015d}"
