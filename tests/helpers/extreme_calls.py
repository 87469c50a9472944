"""Which of the extreme values a test tries, and how JSON writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeVar

from extreme_values import EXTREME
from intensity import times

_CALLS = times(newcomer=60, ci=250, matrix=1_000_000)  # are drawn from all; the last of these is all
LONGEST = 2_000  # characters of a message

Call = TypeVar("Call")


def drawn(calls: Sequence[Call], seed: int | str, tests: int = 1) -> list[Call]:
    """Return all calls that could be made, or as many of them as are asked for, of which each of some tests makes its part."""
    return random.Random(seed).sample(calls, min(-(-_CALLS // tests), len(calls)))


def some(values: Sequence[Call], count: int, seed: str) -> list[Call]:
    """Return so many of some values, or up to a thousand in the matrix."""
    return random.Random(seed).sample(values, min(max(count, _CALLS // 1_000), len(values)))


def in_json() -> dict[str, str]:
    """Return the extreme values as JSON writes them, without those that it has nothing like."""
    return {label: text for label, value in EXTREME.items() if (text := _as_json(value)) is not None}


def _as_json(value: Any) -> str | None:
    before, after = "", ""
    while type(value) in (dict, list) and len(value) == 1 and not _is_odd(value):  # Python's own writer goes less deep
        if type(value) is list:
            before, after, value = f"{before}[", f"]{after}", value[0]
        else:
            name, value = next(iter(value.items()))
            before, after = f"{before}{{{json.dumps(name)}: ", f"}}{after}"
    try:
        return before + (format(Decimal(value), "f") if type(value) is int else json.dumps(value)) + after
    except (TypeError, ValueError, RuntimeError):
        return None


def _is_odd(value: Any) -> bool:
    return type(value) is dict and type(next(iter(value))) is not str
