"""What each converter says of itself, and what converters share: reading the source, drawing rows, writing them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cascade_memory.errors import InvalidInput

Row: TypeAlias = dict[str, Any]
Converted: TypeAlias = Mapping[str, Sequence[Row] | bytes]  # what to write, by the name of the file in the folder of data
_MOST_BYTES = 2 << 30  # of one file of a source


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How to make the file of a task from its source."""

    get: str  # what to download, and from where
    reads: tuple[str, ...]  # files in the folder of the source
    rows: int  # how many are drawn unless somebody asks for another number
    tried: str  # with what the converter was tried
    convert: Callable[[Path, int], Converted]


def words_of(text: str) -> str:
    r"""Return a text in one line, without space at its ends.

    >>> words_of("\nHas my card\n\narrived?  ")
    'Has my card arrived?'
    """
    return " ".join(text.split())


def drawn(rows: Sequence[Row], count: int) -> list[Row]:
    """Draw ``count`` rows by a hash of ``split`` and ``orig_index``: every machine draws the same rows in the same order.

    >>> [row["orig_index"] for row in drawn([{"orig_index": i} for i in range(5)], 3)]
    [4, 3, 1]
    """

    def place(row: Row) -> bytes:
        return hashlib.sha256(f"{row.get('split', '')} {row['orig_index']}".encode()).digest()

    return sorted(rows, key=place)[:count]


def text_of(source: Path, *names: str) -> str:
    """Read, as UTF-8, the first of the files ``names`` that exists in the folder ``source``."""
    path = next((source / name for name in names if (source / name).is_file()), source / names[0])
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidInput(f"{path} has more than {_MOST_BYTES:,} bytes: is it the right file?")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"{source} holds no {names[0]}: name the folder that holds it") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error


def table_of(source: Path, columns: Sequence[str], *names: str) -> list[dict[str, str]]:
    """Read comma-separated values from the first of the files ``names`` that exists; raise if one of ``columns`` is missing."""
    lines = csv.DictReader(io.StringIO(text_of(source, *names), newline=""))
    try:
        rows = list(lines)
    except csv.Error as error:
        raise InvalidInput(f"{source / names[0]} cannot be read as comma-separated values: {error}") from error
    missing = [name for name in columns if name not in (lines.fieldnames or ())]
    if missing or not rows:
        raise InvalidInput(f"{source / names[0]} has another layout: it needs rows with the columns {', '.join(columns)}")
    for number, row in enumerate(rows, start=1):
        if any(not isinstance(row[name], str) for name in columns):
            raise InvalidInput(f"{source / names[0]}: row {number} is cut off")
    return rows


def json_of(source: Path, name: str, kind: type, what: str) -> Any:
    """Read a JSON file whose outermost value has the type ``kind``; otherwise the error says that it should be ``what``."""
    try:
        found = json.loads(text_of(source, name))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source / name} is not JSON: {error}") from error
    if not isinstance(found, kind):
        raise InvalidInput(f"{source / name} has another layout: it should be {what}")
    return found


def lines_of(rows: Sequence[Row]) -> bytes:
    """Write rows as JSON lines, always with the same bytes."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
