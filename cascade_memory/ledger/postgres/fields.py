"""Encodes the values by which metadata are filtered, as bytes that sort as SQLite sorts the values."""

from __future__ import annotations

import hashlib
import struct

_LONG = 1_000  # bytes; PostgreSQL cannot index much longer values


def encoded(value: str | float | bytes) -> bytes:
    r"""Return a letter for the kind (b: bool, n: number, t: text) and the value; the end of a long text becomes a digest.

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


def decoded(raw: bytes) -> str | float | bytes | None:
    r"""Return the value that ``encoded`` was given, a whole number as an int; None for a long text, whose end was not kept.

    >>> [decoded(encoded(value)) for value in ("a", b"\x01", -3, 2**63 - 1, 0.1, 1e300)]
    ['a', b'\x01', -3, 9223372036854775807, 0.1, 1e+300]
    >>> decoded(encoded("x" * 5000)) is None
    True
    """
    kind, rest = raw[:1], raw[1:]
    if kind == b"b":
        return rest
    if kind == b"t":
        return rest.decode() if len(rest) <= _LONG else None
    ordered, beyond = struct.unpack(">QH", rest)
    (nearest,) = struct.unpack(">d", struct.pack(">Q", ordered ^ (1 << 63 if ordered >> 63 else 0xFFFFFFFFFFFFFFFF)))
    if float(nearest).is_integer() and -(2**63) <= (whole := int(nearest) + beyond - 0x8000) < 2**63:
        return whole
    return float(nearest)
