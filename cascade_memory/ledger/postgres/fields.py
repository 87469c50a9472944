"""Encodes the values by which metadata are filtered, as bytes that sort as SQLite sorts the values."""

from __future__ import annotations

import hashlib
import struct

_LONG = 1_000  # bytes; PostgreSQL cannot index much longer values


def encoded(value: str | float | bytes) -> bytes:
    r"""Return a kind (b: bool, n: number, t: text) and the value. A long text ends with its digest instead of its rest.

    >>> encoded("a") < encoded("b"), encoded(-1.5) < encoded(2) < encoded(2.5) < encoded(2**62) < encoded(2**62 + 1)
    (True, True)
    >>> encoded(1) == encoded(1.0), encoded(b"\x01") == encoded(1)
    (True, False)
    """
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, str):
        text = value.encode()
        return b"t" + (text if len(text) <= _LONG else text[:_LONG] + b"\x00" + hashlib.sha256(text).digest())
    nearest = float(value) + 0.0  # 0.0 for -0.0
    (bits,) = struct.unpack(">Q", struct.pack(">d", nearest))
    ordered = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
    rest = value - int(nearest) if isinstance(value, int) else 0  # what a float cannot hold of a long integer
    return b"n" + struct.pack(">QH", ordered, rest + 0x8000)
