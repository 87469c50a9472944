"""Metadata: which names and values can be stored, and how much of them.

Filters find metadata by an index, which holds each value a second time, together with the values of all other users of the
ledger. Every recall with metadata writes its own values into this index within its deadline, whatever others have stored there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import MAX_ID_CHARS, MAX_SOLUTION_CHARS, check_text
from cascade_memory.errors import InvalidInput

MetadataValue: TypeAlias = "str | int | float | bool | list[str] | list[int] | list[float] | list[bool]"
Metadata: TypeAlias = Mapping[str, MetadataValue]

MAX_METADATA_VALUES = 1_000  # that one call may bring, where each item of a list is one
MAX_METADATA_BYTES = 16_384  # of their names and texts together, in UTF-8: a second's work where all others are as long
RESERVED_PREFIX = "cascade_"  # the prefix of our own metadata keys in Chroma, beside the user's keys
STORED_AT_MOST = 3  # times these limits: a case has what its recall, its reward and the memory itself noted
_NUMBER_BYTES = 8
_INT64 = 2**63


def check_metadata(metadata: object, *, most: int = 1) -> dict[str, MetadataValue]:
    """Check that Chroma, JSON and the ledger can all store ``metadata`` without changing it, and return a copy.

    The metadata may be ``most`` times as large as the metadata of one call.

    >>> check_metadata({"tool": "search", "steps": 4})
    {'tool': 'search', 'steps': 4}
    """
    checked = check_fields(metadata, most=most)
    if checked:
        check_amount(checked, most=most)
    return checked


def check_fields(metadata: object, *, most: int | None = None) -> dict[str, MetadataValue]:
    """Check names and values, but not their amount: older versions had no limit, and what they stored is still valid."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {quoted(metadata)}")
    checked: dict[str, MetadataValue] = {}
    given = iter(cast("Mapping[object, object]", metadata).items())
    for key, value in given if most is None else itertools.islice(given, most * MAX_METADATA_VALUES + 1):
        name = check_text(key, "a metadata key", MAX_ID_CHARS)
        if name.startswith(("#", "$", RESERVED_PREFIX, "chroma:")):
            raise InvalidInput(
                f"metadata key {name!r} starts with '#', '$', 'chroma:' or '{RESERVED_PREFIX}', which are reserved; rename it"
            )
        checked[name] = _check_value(name, value)
    return checked


def check_amount(checked: Mapping[str, MetadataValue], what: str = "metadata", *, most: int = 1) -> None:
    """Refuse more metadata than may be stored.

    >>> check_amount({"text": "x" * 20_000})
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: metadata have 20,004 bytes, at most 16,384 are allowed; put long texts into the solution
    """
    values, size = 0, 0
    for name, value in checked.items():
        items = cast("list[Any]", value) if isinstance(value, list) else (value,)
        values += len(items)
        if values > most * MAX_METADATA_VALUES:
            raise InvalidInput(
                f"{what} have more than {most * MAX_METADATA_VALUES:,} values (each item of a list is one); leave some out"
            )
        size += len(name.encode()) * len(items)
        size += sum(len(one.encode()) if isinstance(one, str) else _NUMBER_BYTES for one in items)
    if size > most * MAX_METADATA_BYTES:
        raise InvalidInput(
            f"{what} have {size:,} bytes, at most {most * MAX_METADATA_BYTES:,} are allowed; put long texts into the solution"
        )


def _check_value(key: str, value: object) -> MetadataValue:
    if isinstance(value, list):
        items = list.copy(cast("list[object]", value))
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
