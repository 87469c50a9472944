"""Collects statements for the server, and sends them together as soon as the result of one of them is needed.

With a server that is milliseconds away, a recall takes as long as its round trips, however many statements there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import pq, sql

from cascade_memory.ledger.postgres.dialect import translated
from cascade_memory.ledger.postgres.explained import Clash, explain

_MOST_CHARS = 4_000_000  # of statements that wait
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
# One row, whose key its table's own sequence gives.
_ONE_ROW = re.compile(r"\s*INSERT INTO \w+\.(\w+) (?!.*ON CONFLICT|[^)]*\bkey\b).*RETURNING key\s*$", re.DOTALL)
_IGNORING = "UPDATE OR IGNORE"
_ROWS = pq.ExecStatus.TUPLES_OK


class Result:
    """The result of a statement that may not have been sent yet; reading it sends all waiting statements."""

    def __init__(self, batch: Batch) -> None:
        self._batch: Batch | None = batch
        self.key: Latest | None = None
        self._rows: list[Any] = []
        self._next = 0
        self._rowcount = 0
        self._description: Any = None

    def arrived(self, cursor: psycopg.Cursor[Any]) -> None:
        """Take over what the server answered."""
        self._batch = None
        self._rowcount, self._description = cursor.rowcount, cursor.description
        if cursor.pgresult is not None and cursor.pgresult.status == _ROWS:
            self._rows = cursor.fetchall()

    def _sent(self) -> None:
        if self._batch is not None:
            self._batch.send()

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        self._sent()
        return self._rowcount

    @property
    def description(self) -> Any:
        """One tuple for each column; its first item is the name of the column."""
        self._sent()
        return self._description

    def fetchone(self) -> Any:
        """Return the next row, or None.

        If the statement inserts a row, returns its key, and was not sent yet, the key is a ``Latest``: nothing is sent to learn
        it.
        """
        if self.key is not None and self._batch is not None:
            return (self.key,)
        return self.answered()

    def answered(self) -> Any:
        """Return the next row of the server's answer, or None; this sends all waiting statements."""
        self._sent()
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchall(self) -> Rows:
        """Return all remaining rows; they are fetched when they are first looked at."""
        return Rows(self)

    def rest(self) -> list[Any]:
        """Return all remaining rows now."""
        self._sent()
        rows, self._next = self._rows[self._next :], len(self._rows)
        return rows

    def close(self) -> None:
        """Let go of the rows that were not read."""
        self._rows = []

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""
        yield from self.rest()


class Rows(Sequence[Any]):
    """The rows of a statement that may not have been sent yet."""

    def __init__(self, result: Result) -> None:
        self._result: Result | None = result
        self._rows: list[Any] = []

    def _arrived(self) -> list[Any]:
        if self._result is not None:
            self._rows, self._result = self._result.rest(), None
        return self._rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._arrived())

    def __getitem__(self, place: Any) -> Any:
        """Return a row, or a slice of the rows."""
        return self._arrived()[place]

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows."""
        return iter(self._arrived())


class Latest:
    """Stands for the key of the row that was inserted last into a table; in a statement, the server replaces it by the key."""

    def __init__(self, table: str, result: Result) -> None:
        self.table, self._result = table, result
        self._key: int | None = None

    def __int__(self) -> int:
        """Return the key; this sends all waiting statements."""
        if self._key is None:
            self._key = int(self._result.answered()[0])
        return self._key


class Batch:
    """A connection that takes statements as they are written for SQLite, and sends as many at once as it can."""

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self._place = place
        self._cursor = psycopg.ClientCursor(connection)
        self._waiting: list[tuple[str, Result]] = []
        self._chars = 0
        self._ahead: dict[tuple[str, tuple[Any, ...]], Result] = {}
        self._latest: dict[str, Latest] = {}
        self.trips = 0

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Result:
        """Take a statement, which runs later: after the statements taken earlier, and at the latest when its result is read."""
        if _IGNORING in statement:
            return self._unless_it_clashes(statement.replace(_IGNORING, "UPDATE"), parameters)
        if self._ahead and (asked := self._ahead.pop((statement, tuple(parameters)), None)) is not None:
            return asked
        text = translated(statement)
        values = [self._now(value) for value in parameters]
        result = self.add(self._cursor.mogrify(sql.SQL(text), values))  # type: ignore[arg-type]  # only constants are in it
        if found := _ONE_ROW.match(text):
            result.key = self._latest[found[1]] = Latest(found[1], result)
        return result

    def _now(self, value: Any) -> Any:
        """Return a parameter as it is sent; a ``Latest`` that is no longer the latest key of its table becomes a number."""
        return int(value) if isinstance(value, Latest) and self._latest.get(value.table) is not value else value

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> Result:
        """Take a statement for each set of parameters; the result is that of the last one."""
        result = Result(self)
        for values in parameters:
            result = self.execute(statement, values)
        return result

    def add(self, statement: str) -> Result:
        """Take a statement in PostgreSQL's dialect that contains its parameters; it is sent later, with others."""
        result = Result(self)
        self._waiting.append((statement, result))
        self._chars += len(statement)
        if self._chars > _MOST_CHARS:
            self.send()
        return result

    def require(self, condition: str, parameters: Sequence[Any]) -> None:
        """Make the transaction fail, with ``Unmet``, unless a condition holds; the caller need not wait for the answer."""
        self.execute(f"SELECT 1 / (CASE WHEN {condition} THEN 1 ELSE 0 END)", parameters)

    def take_long(self) -> None:
        """Lift the time limit after which the server ends this transaction if it is idle, since other writers wait for it."""
        self.add("SET LOCAL idle_in_transaction_session_timeout = 0")

    def ask_ahead(self, statement: str, parameters: Sequence[Any]) -> None:
        """Take a statement early, so that it is sent with others; ``execute`` of the same statement then returns its result."""
        self._ahead[statement, tuple(parameters)] = self.execute(statement, parameters)

    def send(self) -> None:
        """Send all waiting statements."""
        waiting, self._waiting, self._chars = self._waiting, [], 0
        if waiting:
            self.trips += 1
            try:
                self._cursor.execute(sql.SQL(";\n".join(text for text, _ in waiting)))  # type: ignore[arg-type]  # as above
            except psycopg.Error as error:
                explain(error, self._place)
            for number, (_, result) in enumerate(waiting):
                if number:
                    self._cursor.nextset()
                result.arrived(self._cursor)

    def _unless_it_clashes(self, statement: str, parameters: Sequence[Any]) -> Result:
        self.send()
        result = self.add("SAVEPOINT clash")
        try:
            changed = self.execute(statement, parameters)
            self.add("RELEASE SAVEPOINT clash")
            self.send()
        except Clash:
            self.add("ROLLBACK TO SAVEPOINT clash")
            return result
        return changed

    def clock(self) -> tuple[float, str]:
        """Return the time of the server, which all machines share, and a name for its clock."""
        (now,) = self.execute(CLOCK).fetchone()
        return float(now), "server"
