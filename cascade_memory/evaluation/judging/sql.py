"""Compares the result of a query with the right one; untrusted SQL runs read-only, within limits, in its own process."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.evaluation.judging.answers import code_in

if TYPE_CHECKING:
    from typing_extensions import Self

Row = tuple[Any, ...]
# Quoted text and comments; brackets; and ORDER BY, which orders the rows of the query only outside of all brackets.
_PART = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|[()]|\border\s+by\b""", re.IGNORECASE | re.DOTALL)


class QueryFailed(Exception):
    """A query was refused, is invalid, or took too long."""


class QueryTookTooLong(QueryFailed):
    """A query took too long and was stopped; its result is unknown, since the machine may only have been busy."""


class ReadOnlyQueries:
    """Runs untrusted SQL: one statement that leaves its file as it is, within a time limit, with bounded rows and memory.

    SQLite runs in a process of its own, which is killed if it does not answer in time. Limits that SQLite checks between its
    instructions are not enough: a single instruction, such as matching a pattern with many wildcards, can take too long.

    >>> with ReadOnlyQueries() as queries:
    ...     queries.run(None, "SELECT 6 * 7 UNION SELECT 1 ORDER BY 1")
    [(1,), (42,)]
    """

    def __init__(self, *, seconds: float = 10.0, most_bytes: int | None = None, mysql: bool = False) -> None:
        self._seconds, self._most_bytes = seconds, most_bytes  # of one result
        self._mysql = mysql  # whether some functions of MySQL that SQLite lacks may be called
        self._process: subprocess.Popen[bytes] | None = None
        self._alone = threading.Lock()  # runs that are played at once share one process

    def run(self, database: Path | None, sql: str, *, most_rows: int = 100_000) -> list[Row]:
        """Return the rows of a query on a file (or without a database), at most ``most_rows`` + 1 of them.

        The additional row shows that the query has more rows than ``most_rows``.
        """
        return self._rows({"database": None if database is None else str(database), "sql": sql, "most_rows": most_rows})

    def after(self, database: Path, sql: str, table: str, *, most_rows: int = 100_000) -> list[Row]:
        """Return the rows of a table after one statement, which may change this table in a copy of the database."""
        return self._rows({"database": str(database), "sql": sql, "most_rows": most_rows, "changes": table})

    def _rows(self, request: dict[str, Any]) -> list[Row]:
        with self._alone:
            answer = self._ask({**request, "mysql": self._mysql})
        if "error" in answer:
            raise QueryFailed(answer["error"])
        return [tuple(_unpacked(one) for one in row) for row in answer["rows"]]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.poll() is not None:
            worker = Path(__file__).with_name("sql_worker.py")
            process = self._process = subprocess.Popen(
                [sys.executable, "-I", str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            line = self._line(process)
        except (BrokenPipeError, EOFError):
            self._stop()
            raise QueryFailed("the query crashed its process, most likely by using too much memory") from None
        return json.loads(line)

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """Read one line; a process that takes too long is killed to end the reading, since Windows cannot wait for a pipe."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return self._read(process)
        except EOFError:
            if not late.is_set():
                raise
            raise QueryTookTooLong(f"the query took longer than {self._seconds:g} seconds") from None
        finally:
            timer.cancel()
            timer.join()
            if late.is_set():
                self._stop()

    def _read(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        parts: list[bytes] = []
        while not (parts and parts[-1].endswith(b"\n")):
            part = os.read(process.stdout.fileno(), 1 << 20)
            if not part:
                raise EOFError
            parts.append(part)
            if self._most_bytes is not None and sum(map(len, parts)) > self._most_bytes:
                self._stop()
                raise QueryFailed(f"the result of the query has more than {self._most_bytes:,} bytes")
        return b"".join(parts)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def close(self) -> None:
        """End the process."""
        self._stop()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the limits, without the process."""
        return partial(ReadOnlyQueries, seconds=self._seconds, most_bytes=self._most_bytes, mysql=self._mysql), ()


def sql_execution(reply: str, gold: str, database: Path, queries: ReadOnlyQueries) -> float:
    """Return 1 if the query in a reply returns the same rows as the right query ``gold``, otherwise 0.

    If the right query orders its rows, their order must be the same too.
    """
    try:
        wanted = queries.run(database, gold)
    except QueryFailed as error:
        raise ValueError(f"the right query itself fails on {database.name}: {error}") from error
    try:
        given = queries.run(database, code_in(reply, "sql"), most_rows=len(wanted))
    except QueryFailed:
        return 0.0
    return float(same_rows(given, wanted, ordered=orders(gold)))


def orders(sql: str) -> bool:
    """Say whether a query orders its own rows, and not only those of a subquery.

    >>> orders("SELECT a FROM t GROUP BY a ORDER BY count(*)"), orders("SELECT sum(a) FROM (SELECT a FROM t ORDER BY a)")
    (True, False)
    """
    depth = 0
    for match in _PART.finditer(sql):
        part = match[0]
        if part in "()":
            depth += 1 if part == "(" else -1
        elif depth == 0 and part[0] in "oO":
            return True
    return False


def same_rows(given: list[Row], wanted: list[Row], *, ordered: bool) -> bool:
    """Say whether two results have the same rows and, with ``ordered``, in the same order.

    >>> same_rows([(1, "a"), (2.0, "b")], [(2, "b"), (1, "a")], ordered=False)
    True
    """
    if len(given) != len(wanted):
        return False
    left, right = ([tuple(_rounded(one) for one in row) for row in rows] for rows in (given, wanted))
    return left == right if ordered else Counter(left) == Counter(right)


def _rounded(value: Any) -> Any:
    """Round fractions, since a sum in another order may differ in its last digits; whole numbers stay exact."""
    if not isinstance(value, float) or value.is_integer():
        return value
    return float(f"{value:.12g}") if math.isfinite(value) else str(value)


def _unpacked(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def schema_of(database: Path, queries: ReadOnlyQueries) -> str:
    """Return the statements that create the tables of a database."""
    rows = queries.run(database, "SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL ORDER BY name")
    return "\n".join(str(row[0]) for row in rows)
