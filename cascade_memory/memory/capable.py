"""The base class for the ``memory.<name>`` of a capability (see ``cascade_memory.capabilities``): what its methods may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from cascade_memory.domain.validation import check_id, check_text, check_whole
from cascade_memory.errors import CascadeError, UnknownCase, UnknownEpisode
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.rows import usable
from cascade_memory.memory.bound import Bound


class Capable(Bound):
    """A noun (``memory.<name>``) that keeps its rows in tables of its own.

    Decorate the class with ``explained``, so that its methods raise a clear error if a row was edited and cannot be used.
    Statements are written for SQLite, with a question mark for each parameter; PostgreSQL runs a translation.
    """

    def _reading(self) -> AbstractContextManager[Connection]:
        """Return a block in which statements may read; they see everything that was acknowledged before."""
        self._caught_up()
        return self._database().read()

    def _writing(self) -> AbstractContextManager[Connection]:
        """Return a block that is one transaction: on disk when it ends, and undone if an error leaves it."""
        self._caught_up()
        return self._database().write(durable=True)

    def _key_of_case(self, tx: Connection, case_id: object) -> int:
        """Return the key of a case of this namespace; raise ``UnknownCase``."""
        return self._key(tx, "cases", check_id(case_id, "case_id"), "case", UnknownCase)

    def _key_of_episode(self, tx: Connection, episode_id: object) -> int:
        """Return the key of an episode of this namespace; raise ``UnknownEpisode``."""
        return self._key(tx, "episode", check_id(episode_id, "episode_id"), "episode", UnknownEpisode)

    def _said(self, text: object, name: str, limit: int) -> str:
        """Check a text that somebody passes; return it with placeholders instead of secrets, so that it may be stored.

        A placeholder may be longer than its secret. A text that exceeds the limit because of this is cut off.
        """
        return self._open().parts.door.record().text(check_text(text, name, limit))[:limit]

    def _id(self, value: object, name: str) -> str:
        """Check an id that somebody passes, and return it."""
        return check_id(value, name)

    def _limited(self, limit: object) -> int:
        """Check how many rows somebody asks for, and return the number; it must be 1 or more."""
        return check_whole(limit, "limit", 1)

    def _fitting(self, table: Table, rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return rows that were read, as mappings; leave out rows that break a rule because somebody has edited them.

        ``columns`` are the names of the columns that were read. The rules of the table are applied to the columns that it has.
        """

        def read(row: Sequence[Any]) -> dict[str, Any]:
            one = dict(zip(columns, row, strict=True))
            table.check_values(one, [name for name in columns if name in table.names])
            return one

        return usable(rows, read)

    def _actor_now(self) -> str | None:
        """Return the actor; raise if ``acting`` has set the actor's name and the name holds a secret."""
        return self._who(self._open().parts.door.record())

    def _key(self, tx: Connection, table: str, one: str, what: str, unknown: type[CascadeError]) -> int:
        found = tx.execute(f"SELECT key FROM {table} WHERE id = ? AND namespace = ?", (one, self._namespace_id())).fetchone()
        if found is None:
            raise unknown(f"there is no {what} {one!r} in namespace {self._namespace!r}")
        return int(found[0])

    def _database(self) -> Database:
        return self._open().parts.ledger.connections
