"""Parses JSON that may come from anywhere, and copies what is to be stored, no deeper than every JSON reader can read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import exact
from cascade_memory.errors import InvalidInput

MAX_DEPTH = 64  # Python's own reader gives up at a depth that depends on who calls it
MAX_NODES = 500_000  # as many as the longest text of JSON that is stored can have
_DIGITS = 1_000  # of a whole number, about; Python writes and reads up to 4,300
_BITS = int(_DIGITS * math.log2(10))


def parsed(text: object) -> Any:
    """Parse a text; None if it is not JSON, is nested too deeply, or is no text at all.

    The caller must check the types in the result. It must also expect infinite numbers, and numbers of any size.

    >>> parsed('["hashing", 8]'), parsed("[" * 50_000), parsed(b"?")
    (['hashing', 8], None, None)
    """
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def plain_json(value: object, name: str) -> dict[str, Any]:
    """Return a mapping as a dict of texts, numbers, booleans, None, lists and dicts; raise if it has anything else.

    >>> plain_json({"q": ("a", 1.5), 2: None}, "step.arguments")
    {'q': ['a', 1.5], '2': None}
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a mapping of plain JSON, not {quoted(value)}")
    return _Copying(name).mapping(cast("Mapping[object, object]", value), 0)


class _Copying:
    def __init__(self, name: str) -> None:
        self._name, self._nodes = name, 0

    def mapping(self, value: Mapping[object, object], depth: int) -> dict[str, Any]:
        return {self._key(key): self._copy(one, depth + 1) for key, one in value.items()}

    def _copy(self, value: object, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidInput(f"{self._name} must be a mapping of at most {MAX_NODES:,} values")
        if isinstance(value, str):
            return str.__str__(value)
        if value is None or isinstance(value, bool):
            return value
        if (number := exact(value)) is not None:
            return self._finite(number)
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{self._name} are nested more than {MAX_DEPTH} deep; pass the inner parts as text")
        if isinstance(value, Mapping):
            return self.mapping(cast("Mapping[object, object]", value), depth)
        if isinstance(value, (list, tuple)):
            return [self._copy(one, depth + 1) for one in cast("list[object]", value)]
        raise InvalidInput(f"{self._name} must be a mapping of plain JSON, and {quoted(value)} is none")

    def _key(self, key: object) -> str:
        """Return a key as JSON has it: always a text."""
        if isinstance(key, str):
            return str.__str__(key)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        number = exact(key)
        if number is None:
            raise InvalidInput(f"{self._name} must be a mapping of plain JSON, and a key of it is {quoted(key)}")
        return repr(self._finite(number))

    def _finite(self, number: float) -> float:
        if not math.isfinite(number) if isinstance(number, float) else number.bit_length() > _BITS:
            raise InvalidInput(f"{self._name} must be a mapping of plain JSON, which has no number such as {quoted(number)}")
        return number
