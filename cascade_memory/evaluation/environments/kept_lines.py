"""Stores results one by one in a file of JSON lines, so that a run that was killed can be continued from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cascade_memory.domain import open_own


def whole_lines(file: Path) -> list[dict[str, Any]]:
    """Read the lines of a file, none if it does not exist; a last line that was cut off is removed from the file."""
    if not file.exists():
        return []
    raw = file.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        with open_own(file, "r+b") as lines:
            lines.truncate(len(whole))
    return [json.loads(line) for line in whole.decode().split("\n") if line]


def add_line(file: Path, line: Mapping[str, Any]) -> None:
    """Add a line; it is on disk when this returns.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     add_line(Path(folder) / "made.jsonl", {"place": 1})
    ...     whole_lines(Path(folder) / "made.jsonl")
    [{'place': 1}]
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with open_own(file, "a") as lines:
        lines.write(json.dumps(line) + "\n")
        lines.flush()
        os.fsync(lines.fileno())
