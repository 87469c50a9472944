"""A sum of all rows of a table, the same in every database and in every order of the rows."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

_SIZE = 16  # bytes


class Sum:
    """Counts rows, and adds up their digests.

    >>> one, other = Sum(), Sum()
    >>> for row in ((1, "a"), (2, None)):
    ...     one.add(row)
    >>> for row in ((2, None), (1, "a")):
    ...     other.add(row)
    >>> one == other, one.rows
    (True, 2)
    """

    def __init__(self) -> None:
        self.rows, self._total = 0, 0

    def add(self, row: Sequence[Any]) -> None:
        """Add a row."""
        digest = hashlib.blake2b(b"".join(map(_written, row)), digest_size=_SIZE).digest()
        self.rows += 1
        self._total = (self._total + int.from_bytes(digest, "big")) % 256**_SIZE

    def __eq__(self, other: object) -> bool:
        """Compare the rows that were added."""
        return isinstance(other, Sum) and (self.rows, self._total) == (other.rows, other._total)

    __hash__ = None  # type: ignore[assignment]  # it changes


def _written(value: object) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    raw = value if isinstance(value, bytes) else str(value).encode()
    return type(value).__name__[:1].encode() + struct.pack(">Q", len(raw)) + raw
