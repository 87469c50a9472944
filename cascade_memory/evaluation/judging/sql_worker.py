"""A process that answers untrusted queries, one line of JSON each. It is run as a script, and killed if it takes too long."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

_MEMORY = 1 << 30  # bytes of address space
_LENGTH, _MOST_BYTES = 0, 10_000_000  # SQLITE_LIMIT_LENGTH: bytes of one value
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}


def _allowed(action: int, *about: str | None) -> int:
    if action not in _READING or (action == sqlite3.SQLITE_FUNCTION and about[1] in _FORBIDDEN):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run one query; return its rows, or the error."""
    database = request["database"]
    where = ":memory:" if database is None else f"{Path(database).resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(where, uri=True)) as connection:
            connection.text_factory = _text
            connection.set_authorizer(_allowed)
            limit: Any = getattr(connection, "setlimit", None)  # from Python 3.11 on
            if limit is not None:
                limit(_LENGTH, _MOST_BYTES)
            rows = connection.execute(request["sql"]).fetchmany(request["most_rows"] + 1)
    except MemoryError:
        return {"error": "the query needs too much memory"}
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"rows": [[_packed(one) for one in row] for row in rows]}


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
