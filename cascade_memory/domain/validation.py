"""Validation of input: everything that comes from outside is checked here once, before any state changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from numbers import Real
from typing import Any, TypeAlias, cast
from uuid import UUID

from cascade_memory.errors import InvalidInput

MetadataValue: TypeAlias = "str | int | float | bool | list[str] | list[int] | list[float] | list[bool]"
Metadata: TypeAlias = Mapping[str, MetadataValue]

MAX_QUERY_CHARS = 100_000
MAX_SOLUTION_CHARS = 1_000_000
MAX_NAMESPACE_CHARS = 256
MAX_ID_CHARS = 256
ADVICE_CHARS = 4_000
RESERVED_PREFIX = "cascade_"  # the prefix of our own metadata keys in Chroma, beside the user's keys
_INT64 = 2**63

# Hints for error messages: what to pass instead of an empty text.
_WANTED = {
    "query": "the text of the task",
    "solution": "what solved the task, or None where nothing is known",
    "namespace": "whose cases these are: any name, such as 'default'",
    "episode_id": "the id that recall() returned",
    "case_id": "the id of a case",
}

# Tab, line feed and carriage return are allowed; the other control characters corrupt terminals, logs and prompts.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_BYTES = bytes(number for number in range(128) if _CONTROL.match(chr(number)))
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}")
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
    """Quickly rule out that a text needs the regular expressions above: they take 20 ms per million characters, this 1 ms."""
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


def check_k(k: object, name: str = "k") -> int:
    """Check how many cases are asked for.

    >>> check_k(3)
    3
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1, not {k!r}")
    return k


def check_reward(value: object, name: str = "reward") -> float:
    """Check a reward, or another number in [0, 1], and return it as a float; booleans count as 0 and 1.

    >>> check_reward(True)
    1.0
    """
    number: float
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, Real):
        number = float(value)
    elif hasattr(value, "item"):  # a numpy or torch scalar
        try:
            number = float(cast("Any", value).item())
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} must be one number in [0, 1], not {value!r}") from error
    else:
        raise InvalidInput(f"{name} must be a number in [0, 1] or a bool, not {type(value).__name__}")
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise InvalidInput(f"{name} must lie in [0, 1], not {number!r}; scale it first")
    return number


def check_share(value: object, name: str) -> float:
    """Check a probability such as ``holdout``: from 0 (never) to below 1.

    >>> check_share(0.05, "holdout")
    0.05
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
        raise InvalidInput(f"{name} must be a number from 0 to below 1, such as 0.05, not {value!r}")
    return float(value)


def check_callable(value: object, name: str) -> None:
    """Refuse a value that cannot be called; None is allowed."""
    if value is not None and not callable(value):
        raise InvalidInput(f"{name} must be a function, not {type(value).__name__}")


def check_seconds(value: object, name: str = "older_than") -> float:
    """Check a duration, and return it in seconds.

    >>> check_seconds(timedelta(minutes=1))
    60.0
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise InvalidInput(f"{name} must be a number of seconds or a timedelta, not {value!r}")
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


def check_metadata(metadata: object) -> dict[str, MetadataValue]:
    """Check that Chroma, JSON and SQLite can all store ``metadata`` without changing it, and return a copy.

    >>> check_metadata({"tool": "search", "steps": 4})
    {'tool': 'search', 'steps': 4}
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {type(metadata).__name__}")
    checked: dict[str, MetadataValue] = {}
    for key, value in cast("Mapping[object, object]", metadata).items():
        name = check_text(key, "a metadata key", MAX_ID_CHARS)
        if name.startswith(("#", "$", RESERVED_PREFIX, "chroma:")):
            raise InvalidInput(
                f"metadata key {name!r} starts with '#', '$', 'chroma:' or '{RESERVED_PREFIX}', which are reserved; rename it"
            )
        checked[name] = _check_value(name, value)
    return checked


def _check_value(key: str, value: object) -> MetadataValue:
    if isinstance(value, list):
        items = cast("list[object]", value)
        if not items:
            raise InvalidInput(f"metadata {key!r} is an empty list, which Chroma cannot hold; leave the key out")
        kinds = {type(item) for item in items}
        if len(kinds) > 1:
            raise InvalidInput(f"metadata {key!r} mixes types in one list, which Chroma cannot hold; use one type")
        return cast("MetadataValue", [_check_scalar(key, item) for item in items])
    return _check_scalar(key, value)


def _check_scalar(key: str, value: object) -> str | int | float | bool:
    if type(value) is bool:
        return value
    if type(value) is str:
        return check_text(value, f"metadata {key!r}", MAX_SOLUTION_CHARS, allow_empty=True)
    if type(value) is int:
        if not -_INT64 <= value < _INT64:
            raise InvalidInput(f"metadata {key!r} is an integer beyond 64 bits; store it as text")
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise InvalidInput(f"metadata {key!r} is {value!r}, which would be dropped silently; leave the key out")
        return value
    raise InvalidInput(
        f"metadata {key!r} is a {type(value).__name__}; only str, int, float, bool and lists of one of them can be stored"
    )
