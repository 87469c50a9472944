"""Moments, as people give them: a time, a date, or how long ago it was."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import TypeAlias

from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import FIRST_MOMENT, LAST_MOMENT, exact
from cascade_memory.errors import InvalidInput

Moment: TypeAlias = "float | datetime | timedelta | str"

_AGO = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([smhdw])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_LONGEST = 100  # characters of a moment
_SAYS = "a time in seconds since 1970, a datetime, a timedelta (so long ago), or a text such as '2026-11-24', or '7d' (ago)"


def moment_of(value: object, name: str) -> float | None:
    """Return a moment in seconds since 1970; None for None. A date without a zone is in the zone of this machine.

    >>> moment_of(0, "since"), moment_of(None, "since"), moment_of("1970-01-02T00:00:00+00:00", "since")
    (0.0, None, 86400.0)
    >>> 3590 < time.time() - moment_of("1h", "since") < 3610
    True
    """
    if value is None:
        return None
    found = _read(value)
    if found is None or not FIRST_MOMENT <= found <= LAST_MOMENT:
        raise InvalidInput(f"{name} must be {_SAYS}, not {quoted(value)}")
    return found


def _read(value: object) -> float | None:
    if (number := exact(value)) is not None:
        return float(number) if abs(number) <= LAST_MOMENT else None
    if isinstance(value, timedelta):
        return time.time() - value.total_seconds()
    try:
        if isinstance(value, str):
            value = str.__str__(value)[:_LONGEST].strip()
            ago = _AGO.fullmatch(value)
            if ago is not None:
                return time.time() - float(ago[1]) * _SECONDS[ago[2]]
            value = datetime.fromisoformat(value)
        return value.timestamp() if isinstance(value, datetime) else None
    except (ValueError, OverflowError, OSError):  # a date that no clock has
        return None
