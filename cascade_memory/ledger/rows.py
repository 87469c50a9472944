"""Converts values and rows between the form in which SQLite stores them and the library's own; notes changes in the log.

A file that was edited may hold invalid texts, and numbers in place of texts. A recall must not fail because of one row.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.validation import LAST_MOMENT
from cascade_memory.ledger.database import Connection, Cursor
from cascade_memory.redaction.saying import log_of

SET_FACT = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
SET_VECTOR = "INSERT INTO {} VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector"
NOTE = "INSERT INTO change (namespace, kind, ref, id) VALUES (?, ?, ?, ?)"
KEYS = "<keys>"  # where ``fetched_for`` puts the question marks
_GREATEST = 2.0**62  # of a number: counts and rewards are far below
_CHUNK = 500  # SQL parameters per statement
NORM_TOLERANCE = 4e-3  # of the squared norm
_T = TypeVar("_T")
_log = log_of(__name__)


# -- values ----------------------------------------------------------------------------------------------------------


def pack_floats(array: NDArray[np.floating]) -> bytes:
    """Pack an array as little-endian float32 bytes.

    >>> unpack_floats(pack_floats(np.array([0.5, 1.0])))
    array([0.5, 1. ], dtype=float32)
    """
    return np.ascontiguousarray(array, "<f4").tobytes()


def unpack_floats(blob: bytes, columns: int | None = None) -> NDArray[np.float32]:
    """Return the array that ``pack_floats`` packed; with ``columns``, as a matrix."""
    array = np.frombuffer(blob, "<f4").astype(np.float32)
    return array if columns is None else array.reshape(-1, columns)


def pack_ints(array: NDArray[np.integer]) -> bytes:
    """Pack an array as little-endian int64 bytes."""
    return np.ascontiguousarray(array, "<i8").tobytes()


def unpack_ints(blob: bytes) -> NDArray[np.int64]:
    """Return the array that ``pack_ints`` packed."""
    return np.frombuffer(blob, "<i8").astype(np.int64)


def int_blobs(*arrays: NDArray[np.integer]) -> tuple[bytes, ...]:
    """Apply ``pack_ints`` to each array."""
    return tuple(np.ascontiguousarray(array, "<i8").tobytes() for array in arrays)


def float_blobs(*arrays: NDArray[np.floating]) -> tuple[bytes, ...]:
    """Apply ``pack_floats`` to each array."""
    return tuple(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def int_arrays(*blobs: bytes) -> tuple[NDArray[np.int64], ...]:
    """Apply ``unpack_ints`` to each blob."""
    return tuple(np.frombuffer(blob, "<i8").astype(np.int64) for blob in blobs)


def picked(row: tuple[bytes, bytes]) -> NDArray[np.int64]:
    """Return the numbers in the first blob at the positions in the second."""
    numbers, places = int_arrays(*row)
    return numbers[places]


def float_arrays(*blobs: bytes) -> tuple[NDArray[np.float32], ...]:
    """Apply ``unpack_floats`` to each blob."""
    return tuple(np.frombuffer(blob, "<f4").astype(np.float32) for blob in blobs)


def pack_solution(solution: Solution | None) -> tuple[str | None, str | None]:
    """Return the (kind, text) by which a solution is stored."""
    if solution is None:
        return None, None
    if isinstance(solution, Trajectory):
        return "trajectory", solution.to_json()
    return "text", solution


def pack_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON.

    >>> pack_metadata({"user": "Zoë"})
    '{"user": "Zoë"}'
    """
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else "{}"  # mostly there are none


def unpack_solution(kind: str | None, text: str | None) -> Solution | None:
    """Return the solution that ``pack_solution`` packed.

    >>> unpack_solution(*pack_solution("turn left"))
    'turn left'
    """
    if kind is None or text is None:
        return None
    check_columns(texts=[text])
    return Trajectory.from_json(text) if kind == "trajectory" else text


def solution_of(kind: str, text: str) -> Solution:
    """Read a solution that is known to exist."""
    return cast("Solution", unpack_solution(kind, text))


# -- rows ------------------------------------------------------------------------------------------------------------


def fetched(
    connection: Connection, query: str, values: Sequence[Any], enough: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """Return all rows of a query, or the rows until ``enough`` returns True; bytes that are not UTF-8 are replaced."""
    try:
        return _until(enough, connection.execute(query, values))
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    assert isinstance(connection, sqlite3.Connection)
    before, connection.text_factory = connection.text_factory, _replaced
    try:
        return _until(enough, connection.execute(query, values))
    finally:
        connection.text_factory = before


def fetched_for(connection: Connection, query: str, keys: Sequence[Any], *values: Any) -> list[Any]:
    """Run a query ``... IN (<keys>) ...`` for many keys, in chunks of what one statement takes; ``values`` follow the keys."""
    rows: list[Any] = []
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        rows += fetched(connection, query.replace(KEYS, ",".join("?" * len(part))), [*part, *values])
    return rows


def executed_for(connection: Connection, statement: str, keys: Sequence[Any], values: Sequence[Any] = ()) -> None:
    """Run a statement ``... IN (<keys>) ...`` that changes rows for many keys, in chunks of what one statement takes.

    ``values`` are its parameters before the keys.
    """
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        connection.execute(statement.replace(KEYS, ",".join("?" * len(part))), [*values, *part])


def given(wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return conditions on columns, each beginning with AND, and their values; a column whose value is None gets no condition.

    >>> given({"status": "open", "source": None, "namespace": 1})
    (' AND status = ? AND namespace = ?', ['open', 1])
    """
    asked = {column: value for column, value in wanted.items() if value is not None}
    return "".join(f" AND {column} = ?" for column in asked), list(asked.values())


def _until(enough: Callable[[list[Any]], bool] | None, rows: Cursor) -> list[Any]:
    if enough is None:
        return list(rows.fetchall())
    found: list[Any] = []
    for row in rows:
        found.append(row)
        if enough(found):
            break
    rows.close()
    return found


def _replaced(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def is_finite(value: object) -> bool:
    """Say whether a value from a column of numbers is a finite number; in an edited row it may be anything."""
    return type(value) in (int, float) and -_GREATEST < cast("float", value) < _GREATEST


def check_columns(
    *,
    texts: Iterable[object] = (),
    maybe: Iterable[object] = (),
    numbers: Iterable[object] = (),
    moments: Iterable[object] = (),
) -> None:
    """Raise if values do not have the types that their table declares: in an edited row, they may be anything.

    ``maybe`` are texts or None; ``moments`` are seconds since 1970 or None. After this check, what is made from a row can be
    shown and compared.

    >>> check_columns(texts=["id"], maybe=[None], numbers=[0.5], moments=[1e300])
    Traceback (most recent call last):
    TypeError: a column has a value that its table cannot have
    """
    good = (
        all(type(text) is str for text in texts)
        and all(text is None or type(text) is str for text in maybe)
        and all(map(is_finite, numbers))
        and all(moment is None or (is_finite(moment) and 0 <= cast("float", moment) <= LAST_MOMENT) for moment in moments)
    )
    if not good:
        raise TypeError("a column has a value that its table cannot have")


def usable(rows: Iterable[Any], read: Callable[[Any], _T]) -> list[_T]:
    """Convert rows, and leave out those that cannot be read; the doctor reports which they are."""
    found: list[_T] = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception as error:
            if _is_readable(row, read):
                raise  # the time limit of a worker, say: the row must not be left out because of it
            _log.warning("a row of the ledger cannot be used (%r): cascade-memory data doctor --fix", error)
    return found


def _is_readable(row: Any, read: Callable[[Any], object]) -> bool:
    try:
        read(row)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def solution_if_readable(kind: str | None, text: str | None) -> Solution | None:
    """Return a solution, or None if it cannot be read."""
    if text is None:
        return None
    return next(iter(usable([(kind, text)], lambda both: unpack_solution(*both))), None)


def metadata_if_readable(text: str | None) -> dict[str, Any]:
    """Parse metadata that were stored as JSON; empty if they cannot be read."""
    found = next(iter(usable([text or "{}"], json.loads)), None)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def with_vectors(rows: list[Any]) -> tuple[list[Any], NDArray[np.float32]]:
    """Split off the vectors at the end of rows; rows whose vector has another length or a norm other than one are left out."""
    sizes = Counter([len(row[-1]) for row in rows]) if len(rows) > 1 else {len(row[-1]): 1 for row in rows}
    size = max(sizes, key=sizes.__getitem__, default=0)
    if not size or size % 4:
        return [], np.zeros((0, 0), np.float32)
    if len(sizes) > 1:
        rows = [row for row in rows if len(row[-1]) == size]
    vectors = unpack_floats(b"".join(row[-1] for row in rows), size // 4)
    with np.errstate(all="ignore"):  # a bad number shows in the squared norm
        squares = np.einsum("nd,nd->n", vectors, vectors) if len(rows) > 1 else np.dot(vectors[0], vectors[0])[None]
    good = np.abs(squares - 1.0) <= NORM_TOLERANCE
    return (rows, vectors) if good.all() else ([row for row, kept in zip(rows, good, strict=True) if kept], vectors[good])


# -- the log of changes ---------------------------------------------------------------------------------------------


def note(connection: Connection, namespace: int, kind: str, ref: int, case_id: str | None = None) -> None:
    """Append a line to the log of changes, which every process reads; ``ref`` is the key of what has changed."""
    connection.execute(NOTE, (namespace, kind, ref, case_id))


def note_both(connection: Connection, namespace: int, first: tuple[str, int], second: tuple[str, int]) -> None:
    """Append two lines in this order, by one statement."""
    rows = "(?, ?, ?), (?, ?, ?)"
    connection.execute(f"INSERT INTO change (namespace, kind, ref) VALUES {rows}", (namespace, *first, namespace, *second))
