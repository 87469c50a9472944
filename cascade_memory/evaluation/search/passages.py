"""The passages of an encyclopedia, read from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cascade_memory.errors import InvalidInput

MOST = 1_000_000  # passages; their vectors alone take 1.5 GB, and every search reads all of them


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph with the title of its article."""

    title: str
    text: str


def read_passages(path: Path) -> list[Passage]:
    """Read JSON lines with ``title`` and ``text``, or with ``contents``: the title in quotes, a line break, the text.

    The second form is that of the dump of Wikipedia which the paper searches. More than ``MOST`` passages are refused.
    """
    passages: list[Passage] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, place in _lines(file, path):
                passages.append(_passage(line, place))
                if len(passages) > MOST:
                    raise InvalidInput(
                        f"{path} has more than {MOST:,} passages, and every search would compare all of them, in RAM. "
                        "Run a search server with an index of its own, and name it: bench run --search URL"
                    )
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    if not passages:
        raise InvalidInput(f"{path} holds no passages")
    return passages


def _lines(file: Any, path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield line, f"{path}, line {number}"


def _passage(line: str, place: str) -> Passage:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON: {error}") from error
    fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    title, text = fields.get("title"), fields.get("text")
    contents = fields.get("contents")
    if text is None and isinstance(contents, str):
        first, _, text = contents.partition("\n")
        title = first.strip().strip('"')
    if not isinstance(title, str) or not isinstance(text, str) or not (title + text).strip():
        raise InvalidInput(f'{place} needs "title" and "text", or "contents" with a title, a line break and a text')
    return Passage(title, text)
