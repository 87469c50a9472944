"""Reads the fields of what a platform sends: each must have the type that the platform documents."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import (
    LAST_MOMENT,
    MAX_ID_CHARS,
    MAX_SOLUTION_CHARS,
    check_moment,
    check_text,
    clean_text,
    exact,
)
from cascade_memory.errors import InvalidInput, PlatformFailed

MAX_LABEL_CHARS = 1_000
_FRACTION = re.compile(r"\.(\d+)")  # of a second; Python 3.10 reads three or six digits
_T = TypeVar("_T")


class Unfit(PlatformFailed):
    """A field of a score cannot be used: the score is left out, and the others are read."""


class Fields:
    """An object of a platform's JSON. With ``item``, one of a list: what is wrong in it is wrong with this one alone.

    >>> Fields("Phoenix", {"id": "7", "result": {"score": 0.5}}).inner("result").value("score")
    0.5
    """

    def __init__(self, platform: str, found: object, where: str = "", *, item: bool = False) -> None:
        self._platform, self._where, self._item = platform, where, item
        if not isinstance(found, Mapping):
            raise self._wrong("", "an object", found)
        self._found = cast("Mapping[str, Any]", found)

    def id(self, name: str) -> str:
        """Return an id or a name: a text without control characters that is not too long."""
        return self._id(name, self._text(name))

    def id_or_none(self, name: str) -> str | None:
        """Return an id, or None if the field is missing, null or empty."""
        found = self.text_or_none(name)
        return None if found is None else self._id(name, found)

    def text_or_none(self, name: str, limit: int = MAX_SOLUTION_CHARS) -> str | None:
        """Return a text without its control characters; None if the field is missing, null or blank."""
        found = None if self._found.get(name) is None else clean_text(self._text(name)).strip()
        if found and len(found) > limit:
            raise Unfit(f"{self._platform}: {self._where}{name} has {len(found):,} characters, at most {limit:,} are allowed")
        return found or None

    def value(self, name: str) -> float | bool | str | None:
        """Return a number, a truth value or a label; None if the field is missing or null, or an object, which has none."""
        found = self._found.get(name)
        if isinstance(found, bool) or found is None:
            return found
        if isinstance(found, Mapping):
            return None
        if (number := exact(found)) is not None:
            return self._number(name, number)
        if not isinstance(found, str):
            raise self._wrong(name, "a number, true or false, or a text", found)
        return self.text_or_none(name, MAX_LABEL_CHARS)

    def typed(self, name: str, kind: str) -> float | bool | str | None:
        """Return a value of one type: "a number", "true or false" or "a text"."""
        found = self._found.get(name)
        fits = {
            "a number": exact(found) is not None,
            "true or false": isinstance(found, bool),
            "a text": isinstance(found, str),
        }
        if not fits[kind]:
            raise self._wrong(name, kind, found)
        return self.value(name)

    def moment(self, name: str) -> float:
        """Return a time in seconds since 1970; a time without a zone is one of UTC."""
        given = self._text(name)
        try:
            found = datetime.fromisoformat(_FRACTION.sub(_six_digits, given.strip().upper().replace("Z", "+00:00")))
            found = found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
            return check_moment(found.timestamp(), name)
        except (ValueError, OverflowError):
            raise self._wrong(name, "a time", given) from None

    def one_of(self, name: str, known: Mapping[str, _T]) -> _T:
        """Return what one of the documented words means."""
        found = self._text(name)
        if found not in known:
            raise self._wrong(name, f"one of {', '.join(known)}", found)
        return known[found]

    def correction(self, name: str) -> str | None:
        """Return a text, or the one text in an object, or the JSON of another object; None if the field is missing or null."""
        found = self._found.get(name)
        if isinstance(found, Mapping):
            inner = list(cast("Mapping[str, Any]", found).values())
            text = inner[0] if len(inner) == 1 and isinstance(inner[0], str) else self._json(name, found) if inner else ""
            return Fields(self._platform, {name: text}, self._where, item=self._item).text_or_none(name)
        return self.text_or_none(name)

    def has(self, name: str) -> bool:
        """Say whether a field is there and is not null."""
        return self._found.get(name) is not None

    def inner(self, name: str) -> Fields:
        """Return an object within this one; an empty one if the field is missing or null."""
        found = self._found.get(name)
        return Fields(self._platform, {} if found is None else found, f"{self._where}{name}.", item=self._item)

    def items(self, name: str) -> list[Fields]:
        """Return the objects of a list."""
        found = self._found.get(name)
        if not isinstance(found, list):
            raise self._wrong(name, "a list", found)
        return listed(self._platform, cast("list[object]", found), f"{self._where}{name}")

    def raw(self, name: str) -> Any:
        """Return a field as it is."""
        return self._found.get(name)

    def names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._found)

    def _json(self, name: str, found: object) -> str:
        try:
            return json.dumps(found, ensure_ascii=False)
        except (ValueError, RecursionError):
            raise Unfit(f"{self._platform}: {self._where}{name} is nested too deeply") from None

    def _id(self, name: str, found: str) -> str:
        try:
            return check_text(found, f"{self._where}{name}", MAX_ID_CHARS)
        except InvalidInput as error:
            raise Unfit(f"{self._platform}: {error}") from None

    def _text(self, name: str) -> str:
        found = self._found.get(name)
        if not isinstance(found, str):
            raise self._wrong(name, "a text", found)
        return found

    def _number(self, name: str, found: float) -> float:
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(name, "a finite number", found)
        return number

    def _wrong(self, name: str, wanted: str, found: object) -> PlatformFailed:
        field = f"{self._where}{name}".rstrip(".") or "an answer"
        given = "missing" if found is None else f"not {quoted(found)}"
        kind = Unfit if self._item else PlatformFailed
        return kind(f"{self._platform}: {field} should be {wanted}, and is {given}; its API may have changed")


def listed(platform: str, found: object, where: str) -> list[Fields]:
    """Return the objects of a list of JSON.

    >>> len(listed("LangSmith", [{}, {}], "feedback"))
    2
    """
    if not isinstance(found, list):
        raise PlatformFailed(f"{platform}: {where} should be a list, and is not; its API may have changed")
    return [Fields(platform, one, f"{where}[{number}].", item=True) for number, one in enumerate(cast("list[object]", found))]


def written(moment: float) -> str:
    """Write a time as platforms take it.

    >>> written(1.7e9)
    '2023-11-14T22:13:20.000Z'
    """
    utc = datetime.fromtimestamp(min(max(moment, 0.0), LAST_MOMENT), timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def _six_digits(found: re.Match[str]) -> str:
    return f".{found[1][:6]:0<6}"
