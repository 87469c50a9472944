"""Reads the published streams of the environments: each line of JSON has a task and names its game or experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cascade_memory.domain import check_query
from cascade_memory.errors import InvalidInput


def published_rows(path: Path, needed: Mapping[str, type]) -> list[Mapping[str, Any]]:
    """Read a file of JSON objects, and check that each has the needed fields; ``task`` must be a text that can be stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rows.jsonl"
    ...     _ = file.write_text('{"task": "Find a plant.", "variationIdx": 3}', encoding="utf-8")
    ...     published_rows(file, {"task": str, "variationIdx": int})
    [{'task': 'Find a plant.', 'variationIdx': 3}]
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    rows = [_row(line, needed, f"{path}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise InvalidInput(f"{path} holds no tasks")
    return rows


def _row(line: str, needed: Mapping[str, type], place: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InvalidInput(f"{place} is not a JSON object")
    found = cast("dict[str, Any]", row)
    for name, kind in needed.items():
        if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
            raise InvalidInput(f"{place} needs {name!r}, which must be {'a text' if kind is str else 'a whole number'}")
    try:
        check_query(found["task"])
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from error
    return found


def same_text(one: str, other: str) -> bool:
    r"""Say whether two descriptions have the same lines in any order, since a world may list the things in a room in any order.

    >>> same_text("You see:\n\ta cup\n\ta fork", "You see:\n\ta fork\n\ta cup\n")
    True
    """
    return _lines(one) == _lines(other)


def _lines(text: str) -> Sequence[str]:
    return sorted(line.strip() for line in text.splitlines() if line.strip())
