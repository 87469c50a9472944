"""A process that answers untrusted queries, one line of JSON each. It is run as a script, and killed if it takes too long."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import sys
from pathlib import Path
from typing import Any

_MEMORY = 1 << 30  # bytes of address space
_LENGTH, _MOST_BYTES = 0, 10_000_000  # SQLITE_LIMIT_LENGTH: bytes of one value
_MOST_PAGES = 20_000  # of a copy that a statement may change: 80 MB
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}


class _Deviation:
    """MySQL's STDDEV, which divides by the number of values."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: Any) -> None:
        if value is not None:
            self._values.append(float(value))

    def finalize(self) -> float | None:
        if not self._values:
            return None
        mean = sum(self._values) / len(self._values)
        return math.sqrt(sum((value - mean) ** 2 for value in self._values) / len(self._values))


def _add_functions_of_mysql(connection: Any) -> None:
    connection.create_aggregate("STDDEV", 1, _Deviation)
    connection.create_function("YEAR", 1, _year, deterministic=True)
    connection.create_function("MONTH", 1, _month, deterministic=True)


def _year(date: Any) -> int | None:
    return None if date is None else int(str(date)[:4])


def _month(date: Any) -> int | None:
    return None if date is None else int(str(date)[5:7])


def _allowed(action: int, *about: str | None) -> int:
    if action not in _READING or (action == sqlite3.SQLITE_FUNCTION and about[1] in _FORBIDDEN):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run one query; return its rows, or the error. If ``changes`` names a table, return its rows after the statement."""
    database, table = request["database"], request.get("changes")
    where = ":memory:" if database is None else f"{Path(database).resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(where, uri=True)) as stored, contextlib.ExitStack() as after:
            connection = stored if table is None else after.enter_context(contextlib.closing(_copy(stored)))
            connection.text_factory = _text
            if request.get("mysql"):
                _add_functions_of_mysql(connection)
            connection.set_authorizer(_allowed if table is None else _may_change(table))
            limit: Any = getattr(connection, "setlimit", None)  # from Python 3.11 on
            if limit is not None:
                limit(_LENGTH, _MOST_BYTES)
            rows = connection.execute(request["sql"]).fetchmany(request["most_rows"] + 1)
            if table is not None:
                quoted = '"' + table.replace('"', '""') + '"'
                rows = connection.execute(f"SELECT * FROM {quoted}").fetchmany(request["most_rows"] + 1)
    except MemoryError:
        return {"error": "the query needs too much memory"}
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"rows": [[_packed(one) for one in row] for row in rows]}


def _copy(stored: sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    copy.execute(f"PRAGMA max_page_count = {_MOST_PAGES}")
    stored.backup(copy)
    return copy


def _may_change(table: str) -> Any:
    """Return an authorizer that also allows changes of the rows of one table."""
    changing = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}

    def allowed(action: int, *about: str | None) -> int:
        if action in changing:
            return sqlite3.SQLITE_OK if about[0] == table else sqlite3.SQLITE_DENY
        return _allowed(action, *about)

    return allowed


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _packed(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def main() -> None:
    """Answer queries until standard input is closed."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limit, and macOS may refuse this one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
