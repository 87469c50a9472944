"""Rows as they can be used: a file that somebody has edited may hold texts that are none, and recall must not fail for one."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.trajectory import Solution
from cascade_memory.ledger.packing import unpack_floats, unpack_solution

_CHUNK = 500  # host parameters a statement
_NORM_TOLERANCE = 4e-3  # of the square
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def fetched(
    connection: sqlite3.Connection, query: str, values: Sequence[Any], enough: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """Return all rows of a query, or those until there are enough; in texts that are not UTF-8, what is not is replaced."""
    try:
        return _until(enough, connection.execute(query, values))
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    before, connection.text_factory = connection.text_factory, _replaced
    try:
        return _until(enough, connection.execute(query, values))
    finally:
        connection.text_factory = before


def _until(enough: Callable[[list[Any]], bool] | None, rows: sqlite3.Cursor) -> list[Any]:
    if enough is None:
        return rows.fetchall()
    found: list[Any] = []
    for row in rows:
        found.append(row)
        if enough(found):
            break
    rows.close()
    return found


def _replaced(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def usable(rows: Iterable[Any], read: Callable[[Any], _T]) -> list[_T]:
    """Return what is made of rows, without those of which nothing can be made; the doctor says which they are."""
    found: list[_T] = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception as error:  # noqa: BLE001 - a torn or edited row fails in any way; the others count
            _log.warning("a row of the ledger cannot be used (%r): cascade-memory doctor --fix", error)
    return found


def solution_if_readable(kind: str | None, text: str | None) -> Solution | None:
    """Return a solution, or None where it cannot be read."""
    if text is None:
        return None
    return next(iter(usable([(kind, text)], lambda both: unpack_solution(*both))), None)


def metadata_if_readable(text: str | None) -> dict[str, Any]:
    """Return metadata that was stored as JSON, or none where it cannot be read."""
    found = next(iter(usable([text or "{}"], json.loads)), None)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def with_vectors(rows: list[Any]) -> tuple[list[Any], NDArray[np.float32]]:
    """Return the rows that end with a vector of the usual length and of norm one, and these vectors."""
    sizes = Counter([len(row[-1]) for row in rows]) if len(rows) > 1 else {len(row[-1]): 1 for row in rows}
    size = max(sizes, key=sizes.__getitem__, default=0)
    if not size or size % 4:
        return [], np.zeros((0, 0), np.float32)
    if len(sizes) > 1:
        rows = [row for row in rows if len(row[-1]) == size]
    vectors = unpack_floats(b"".join(row[-1] for row in rows), size // 4)
    with np.errstate(all="ignore"):  # one bad number makes a bad square
        squares = np.einsum("nd,nd->n", vectors, vectors) if len(rows) > 1 else np.dot(vectors[0], vectors[0])[None]
    good = np.abs(squares - 1.0) <= _NORM_TOLERANCE
    return (rows, vectors) if good.all() else ([row for row, kept in zip(rows, good, strict=True) if kept], vectors[good])


def parts(items: Sequence[Any]) -> list[tuple[list[Any], str]]:
    """Return as many at a time as one statement takes, with a question mark for each."""
    chunks = [list(items[start : start + _CHUNK]) for start in range(0, len(items), _CHUNK)]
    return [(part, ",".join("?" * len(part))) for part in chunks]
