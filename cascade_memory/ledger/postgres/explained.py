"""Turns errors of PostgreSQL into the library's own errors, which say what to do."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import Any, NoReturn

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from cascade_memory.errors import InvalidInput, NamespaceForgotten, StoreBusy, StoreError, StoreUnwritable


class Clash(sqlite3.IntegrityError):
    """Rows contradict each other; the ledger's code catches this as ``sqlite3.IntegrityError``."""


class Unmet(StoreError):
    """A condition that ``Batch.require`` demands does not hold, so the transaction failed."""


def place_of(url: str) -> str:
    """Return a name of a database without its password; raise ``InvalidInput`` if ``url`` is no URL of PostgreSQL.

    >>> place_of("postgresql://ann:secret@db.example.org/agents")
    'the database agents at db.example.org'
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise InvalidInput("this is no URL of PostgreSQL, for example postgresql://user@host/database") from None
    _check_password_is_not_elsewhere(url, parts)
    return f"the database {parts.get('dbname', parts.get('user', 'postgres'))} at {parts.get('host', 'this machine')}"


def _check_password_is_not_elsewhere(url: str, parts: Mapping[str, Any]) -> None:
    """Refuse a URL if the database's client would read a part of the password as a host, a port or a name.

    A host that begins with @ is accepted: it names a socket that has no file.
    """
    before, at, _ = url.partition("?")[0].rpartition("@")
    misread = at and ("@" in before or "/" in before.partition("://")[2])
    if misread or "@" in str(parts.get("host", ""))[1:] or not re.fullmatch(r"[\d,]*", str(parts.get("port", ""))):
        raise InvalidInput(
            "the user, the password or the port in this URL of PostgreSQL cannot be told apart: "
            "write @ as %40, / as %2F, ? as %3F and : as %3A in the user and the password"
        )


def explain(error: psycopg.Error, place: str) -> NoReturn:
    """Raise the library's own error for an error of PostgreSQL; ``place`` names the database in the message."""
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, errors.DivisionByZero):  # see ``Batch.require``
        raise Unmet(f"{place} has changed") from error
    if isinstance(error, errors.ForeignKeyViolation) and str(error.diag.constraint_name).endswith("_namespace_fkey"):
        raise NamespaceForgotten.now() from error
    if isinstance(error, psycopg.IntegrityError):
        raise Clash(said) from error
    if isinstance(error, (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)):
        raise StoreBusy(f"{place} was busy for too long ({said}); check whether another process hangs") from error
    if isinstance(error, errors.IdleInTransactionSessionTimeout):
        raise StoreBusy(
            f"{place} ended a transaction, since this process was stopped in the middle of a write; nothing was written"
        ) from error
    if isinstance(error, (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege, errors.DiskFull)):
        raise StoreUnwritable(f"{place} cannot be written ({said}); check its rights and its disk") from error
    raise StoreError(f"{place} failed: {said}") from error
