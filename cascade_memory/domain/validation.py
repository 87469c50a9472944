"""Validation of input: everything that comes from outside is checked here once, before any state changes.

Moments are read here, too, as people give them: a time, a date, or how long ago it was.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import UUID

from cascade_memory.domain.display import quoted
from cascade_memory.errors import InvalidInput

Moment: TypeAlias = "float | datetime | timedelta | str"
_AGO = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([smhdw])")
_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+://")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_MOMENT_CHARS = 100  # characters of a moment
_A_MOMENT = "a time in seconds since 1970, a datetime, a timedelta (so long ago), or a text such as '2026-11-24', or '7d' (ago)"
MAX_QUERY_CHARS = 100_000
MAX_SOLUTION_CHARS = 1_000_000
MAX_NAMESPACE_CHARS = 256
MAX_ID_CHARS = 256
ADVICE_CHARS = 4_000
# What a caller passes and what a row of the ledger holds is checked against the same limits. A number that the door lets in and
# the rules for rows do not would be stored, and then no backup and no import would take it.
GREATEST = 2**53  # greatest key or count: floats and JSON hold every whole number up to it
FIRST_MOMENT = -62_135_596_800.0  # the beginning of the year 1, in seconds since 1970: Python's calendar begins there
LAST_MOMENT = 253_402_300_799.0  # the end of the year 9999, in seconds since 1970
LONGEST = 36_525 * 86_400.0  # seconds, a century: locks take no much longer times
# Hints for error messages: what to pass instead of an empty text.
_WANTED = {
    "query": "the text of the task",
    "solution": "what solved the task (a reward may also come without a solution)",
    "namespace": "whose cases these are: any name, such as 'default'",
    "episode_id": "the id that recall() returned",
    "case_id": "the id of a case",
}
# Tab, line feed and carriage return are allowed; the other control characters corrupt terminals, logs and prompts.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_BYTES = bytes(number for number in range(128) if _CONTROL.match(chr(number)))
_SURROGATE = re.compile("[\ud800-\udfff]")


def moment_of(value: object, name: str) -> float | None:
    """Return a moment in seconds since 1970; None for None. A date without a zone is in the zone of this machine.

    >>> moment_of(0, "since"), moment_of(None, "since"), moment_of("1970-01-02T00:00:00+00:00", "since")
    (0.0, None, 86400.0)
    >>> 3590 < time.time() - moment_of("1h", "since") < 3610
    True
    """
    if value is None:
        return None
    found = _read_moment(value)
    if found is None or not FIRST_MOMENT <= found <= LAST_MOMENT:
        raise InvalidInput(f"{name} must be {_A_MOMENT}, not {quoted(value)}")
    return found


def _read_moment(value: object) -> float | None:
    if (number := exact(value)) is not None:
        return float(number) if abs(number) <= LAST_MOMENT else None
    if isinstance(value, timedelta):
        return time.time() - value.total_seconds()
    try:
        if isinstance(value, str):
            value = str.__str__(value)[:_MOMENT_CHARS].strip()
            ago = _AGO.fullmatch(value)
            if ago is not None:
                return time.time() - float(ago[1]) * _UNITS[ago[2]]
            value = datetime.fromisoformat(value)
        return value.timestamp() if isinstance(value, datetime) else None
    except (ValueError, OverflowError, OSError):  # a date that no clock has
        return None


def clean_text(text: str) -> str:
    r"""Drop characters that the memory refuses: control characters (including terminal colours) and lone surrogates.

    >>> clean_text("a\x1b[31m red\x00 word")
    'a red word'
    """
    without_colours = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", text)
    return _SURROGATE.sub("", _CONTROL.sub("", without_colours))


def check_text(value: object, name: str, limit: int, *, allow_empty: bool = False) -> str:
    """Check that ``value`` is text that can be stored, embedded and shown.

    >>> check_text("heat the cup", "query", 100)
    'heat the cup'
    """
    if not isinstance(value, str):
        hint = f"; pass its .{name}" if hasattr(type(value), name) else ""  # a recall, in place of its id
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}{hint}")
    value = str.__str__(value)  # of exactly this type: a class of its own may say anything of its length
    if not allow_empty and not value.strip():
        raise InvalidInput(f"{name} is empty; pass {_WANTED.get(name, 'some text')}")
    if len(value) > limit:
        raise InvalidInput(f"{name} has {len(value):,} characters, at most {limit:,} are allowed; shorten it first")
    if _looks_plain(value):
        return value
    if found := _CONTROL.search(value):
        raise InvalidInput(
            f"{name} contains the control character {found.group()!r} at position {found.start()}; "
            "cascade_memory.clean_text() removes such characters"
        )
    if found := _SURROGATE.search(value):
        raise InvalidInput(
            f"{name} contains a lone surrogate at position {found.start()}, which no file can hold; "
            "decode the text correctly, or drop it with cascade_memory.clean_text()"
        )
    return value


def _looks_plain(text: str) -> bool:
    """Say whether the regular expressions above surely find nothing: this takes 1 ms per million characters, they take 20."""
    if text.isascii() and text.isprintable():
        return True
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return False
    # In UTF-8, the control characters from 0x80 on begin with the byte C2.
    return b"\xc2" not in raw and len(raw.translate(None, _CONTROL_BYTES)) == len(raw)


def check_query(query: object) -> str:
    """Check the text of a task."""
    return check_text(query, "query", MAX_QUERY_CHARS)


def check_namespace(namespace: object) -> str:
    """Check a namespace. Any non-empty text will do: it is never used as a file or collection name.

    >>> check_namespace("tenants/42: Zoë")
    'tenants/42: Zoë'
    """
    return check_text(namespace, "namespace", MAX_NAMESPACE_CHARS)


def check_id(value: object, name: str) -> str:
    """Check the id of an episode or a case, and return it as text (a ``uuid.UUID`` is accepted as well)."""
    return check_text(str(value) if isinstance(value, UUID) else value, name, MAX_ID_CHARS)


def check_path(value: object, name: str) -> Path:
    """Return the path that a caller names; refuse a value that cannot be the name of a file.

    >>> check_path("memory", "path").name
    'memory'
    """
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidInput(f"{name} must be a path, not {quoted(value)}")
    text = os.fsdecode(value)
    if isinstance(value, str) and (url := _URL.match(text)):  # it may hold a password, and a folder of that name would show it
        raise InvalidInput(f"{name} must be a path on this machine, not a URL that begins with {url[0].strip()}")
    try:
        text.encode()  # SQLite and Chroma take no other names
        path = Path(text).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # whoever opens it says this better
            path.lstat()
    except UnicodeEncodeError:
        raise InvalidInput(f"{name} must be UTF-8, which {quoted(text)} is not") from None
    except (OSError, ValueError, RuntimeError) as error:  # too long a name, a zero character, the home of an unknown user
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{name} names no file: {quoted(text)} ({why})") from error
    return path


def check_word(value: object, allowed: Sequence[str], name: str) -> str:
    """Check that a value is one of some words.

    >>> check_word("ok", ("ok", "error"), "status")
    'ok'
    """
    if not isinstance(value, str) or (word := str.__str__(value)) not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(allowed)}, not {quoted(value)}")
    return word


def check_callable(value: object, name: str) -> None:
    """Refuse a value that cannot be called; None is allowed."""
    if value is not None and not callable(value):
        raise InvalidInput(f"{name} must be a function, not {type(value).__name__}")


# -- numbers ---------------------------------------------------------------------------------------------------------------
def exact(value: object) -> int | float | None:
    """Return a number as a plain int or float, since a subclass may compare differently; None for anything else.

    >>> exact(3), exact(0.5), exact(True)
    (3, 0.5, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int.__index__(value)
    return float.__pos__(value) if isinstance(value, float) else None


def check_whole(value: object, name: str, low: int = 0, high: int = GREATEST) -> int:
    """Check a whole number within bounds.

    >>> check_whole(True, "copies")
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: copies must be a whole number from 0 to 9,007,199,254,740,992, not True
    """
    number = exact(value)
    if not isinstance(number, int) or not low <= number <= high:
        raise InvalidInput(f"{name} must be a whole number from {low:,} to {high:,}, not {quoted(value)}")
    return number


def check_number(value: object, name: str, low: float, high: float) -> float:
    """Check a number within bounds; nan is refused.

    >>> check_number(1e300, "novelty", 0.0, 1.0)
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: novelty must be a number from 0 to 1, not 1e+300
    """
    number = exact(value)
    if number is None or not low <= number <= high:
        raise InvalidInput(f"{name} must be a number from {low:g} to {high:g}, not {quoted(value)}")
    return float(number)


def check_k(k: object, name: str = "k") -> int:
    """Check ``k``, the number of cases that are asked for, and return it.

    >>> check_k(3)
    3
    """
    return check_whole(k, name, 1)


def check_reward(value: object, name: str = "reward") -> float:
    """Check a reward, or another number in [0, 1], and return it as a float; booleans count as 0 and 1.

    >>> check_reward(True), check_reward(-0.0)
    (1.0, 0.0)
    """
    if isinstance(value, bool):
        return float(value)
    number = _as_float(value, name) if (plain := exact(value)) is None else plain
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} must lie in [0, 1], not {quoted(number)}; scale it first")
    return float(number) + 0.0


def _as_float(value: object, name: str) -> float:
    """Return a number of another type, such as a fraction or a scalar of numpy or torch."""
    if not isinstance(value, Real) and not hasattr(value, "item"):
        raise InvalidInput(f"{name} must be a number in [0, 1] or a bool, not {quoted(value)}")
    try:
        return float(value if isinstance(value, Real) else cast("Any", value).item())
    except Exception as error:
        raise InvalidInput(f"{name} must be one number in [0, 1], not {quoted(value)}") from error


def check_share(value: object, name: str) -> float:
    """Check a probability such as ``holdout``: from 0 (never) to below 1.

    >>> check_share(0.05, "holdout")
    0.05
    """
    number = exact(value)
    if number is None or not 0.0 <= number < 1.0:
        raise InvalidInput(f"{name} must be a number from 0 to below 1, such as 0.05, not {quoted(value)}")
    return float(number)


def check_moment(value: object, name: str) -> float:
    """Check a time: seconds since 1970, up to the end of the year 9999."""
    return check_number(value, name, 0.0, LAST_MOMENT)


def check_seconds(value: object, name: str = "older_than") -> float:
    """Check a duration of at most a century, and return it in seconds.

    >>> check_seconds(timedelta(minutes=1))
    60.0
    """
    seconds = exact(value.total_seconds() if isinstance(value, timedelta) else value)
    if seconds is None or not 0 <= seconds < math.inf:
        raise InvalidInput(f"{name} must be a number of seconds or a timedelta, not {quoted(value)}")
    if seconds > LONGEST:
        raise InvalidInput(f"{name} must be a century at most ({LONGEST:,.0f} seconds), not {quoted(seconds)} seconds")
    return float(seconds)


def check_duration(value: object, name: str) -> float:
    """Check a duration above zero, and return it in seconds.

    >>> check_duration(0.5, "deadline")
    0.5
    """
    seconds = check_seconds(value, name)
    if not seconds:
        raise InvalidInput(f"{name} must be more than 0 seconds, or None for no limit")
    return seconds
