"""Values that no honest caller passes: numbers beyond every limit, texts that no file holds, deep, huge and hostile objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np


def fail(*_: object) -> Any:
    """Raise, whatever is asked."""
    raise RuntimeError("a method of a hostile object was called")


class Hostile:
    """An object all of whose methods raise."""

    __len__ = __eq__ = __str__ = __repr__ = __index__ = __float__ = __bool__ = item = fail  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 1


class HostileInt(int):
    """A number that cannot be compared or printed."""

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __str__ = __repr__ = __int__ = __index__ = fail  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 1


class HostileText(str):
    """A text that lies about its length, and equals everything."""

    def __len__(self) -> int:
        return 1

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    __str__ = __repr__ = strip = encode = fail  # type: ignore[assignment]


class WithinAll(float):
    """A nan that is greater and smaller than anything."""

    def __le__(self, _: object) -> bool:
        return True

    __ge__ = __lt__ = __gt__ = __le__  # type: ignore[assignment]


class Endless(Mapping[str, int]):
    """A mapping without an end."""

    def __getitem__(self, _: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return (f"k{i}" for i in endless())

    def __len__(self) -> int:
        return 1


def endless() -> Iterator[int]:
    """Count for longer than anybody should listen."""
    yield from range(2_000_000)
    raise AssertionError("this has no end, and was read to the end")


def deep(depth: int, kind: type = dict) -> Any:
    """Return a value that is nested."""
    found: Any = 1
    for _ in range(depth):
        found = {"a": found} if kind is dict else [found]
    return found


def _filters() -> dict[str, Any]:
    below: Any = {"a": 1}
    for _ in range(5_000):
        below = {"$and": [below]}
    doubled: Any = {"a": 1}
    for _ in range(14):
        doubled = {"$and": [doubled, doubled]}
    return {
        "filter, deep": below,
        "filter, doubled": doubled,
        "filter, wide": {f"k{i}": i for i in range(3_000)},
        "filter, many": {"$or": [{"a": 1}] * 1_001},
        "filter, options": {"$and": [{"a": {"$in": list(range(10_000))}}] * 5},
    }


EXTREME: dict[str, Any] = {
    **{str(number): number for number in (2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -1, 0, 1)},
    **{"10**400": 10**400, "-10**400": -(10**400), "10**5000": 10**5_000},
    **{repr(number): number for number in (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, True, 1j)},
    **{
        f"numpy {one!r}": one for one in (np.int64(3), np.uint64(2**64 - 1), np.float32(0.5), np.float64("nan"), np.bool_(True))
    },
    **{"numpy, long": np.longdouble("1e4000"), "numpy, empty": np.array([]), "numpy, text": np.str_("heat some egg")},
    **{f"Decimal {text}": Decimal(text) for text in ("0.5", "NaN", "sNaN", "1e999999")},
    **{"Fraction": Fraction(1, 3), "Fraction, huge": Fraction(10**400, 3)},
    **{str(one): one for one in (timedelta.max, timedelta.min, datetime.max, datetime.min)},
    **{"empty": "", "space": " ", "surrogate": "\ud800", "nul": "a\0b", "bytes": b"x", "1 MB": "x" * 1_000_001},
    **{"256": "é" * 256, "257": "é" * 257, "hidden": "a\u202eb", "late": "9999-12-31T23:59:59-23:59", "ago": "999999w"},
    **{"None": None, "a type": int, "[]": [], "{}": {}, "set": {1}, "object": object(), "a function": lambda *_: None},
    **{
        "{1: 1}": {1: 1},
        "{None: 1}": {None: 1},
        "{b'': 1}": {b"a": 1},
        "surrogate key": {"\ud800": 1},
        "nul value": {"a": "\0"},
    },
    **{"deep": deep(5_000), "deep list": deep(5_000, list), "less deep": deep(900)},
    **{"keys": {f"k{i}": 1 for i in range(100_000)}, "long key": {"k" * 1_000_000: 1}, "long value": {"k": "v" * 1_000_000}},
    **{"list": list(range(200_000)), "texts": {"k": ["x" * 1_000] * 5_000}, "endless": Endless()},
    **{"large": {"a": 1e308}, "minus zero": {"a": -0.0}, "2**63 - 1": {"a": 2**63 - 1}, "2**63": {"a": 2**63}},
    **{"hostile": Hostile(), "hostile number": HostileInt(2), "hostile text": HostileText("x"), "within all": WithinAll("nan")},
    **{"hostile item": [Hostile()], "hostile value": {"a": Hostile()}, "hostile key": {HostileText("k"): 1}},
    **_filters(),
}
