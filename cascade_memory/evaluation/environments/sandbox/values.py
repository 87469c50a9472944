"""What a script can hold besides plain values and tables: modules and caught errors; and which attributes each type has."""

from __future__ import annotations

import datetime
import re
import string
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.evaluation.environments.sandbox import columns, frames
from cascade_memory.evaluation.environments.sandbox.frames import Row, Table


class Module:
    """The part of a module that a script may use."""

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        self.name, self.names = name, dict(names)

    def __repr__(self) -> str:
        return f"<module {self.name}>"


class Caught:
    """An error that a script caught. It has no traceback."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.args = tuple(one if type(one) in (str, int, float, bool) else str(one) for one in error.args)

    def __str__(self) -> str:
        return str(self.error)

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}({str(self.error)!r})"


_LIST = "append clear copy count extend index insert pop remove reverse sort"
_DICT = "clear copy get items keys pop popitem setdefault update values"
_SET = (
    "add clear copy difference discard intersection isdisjoint issubset issuperset pop remove symmetric_difference union update"
)
_DATE = "year month day weekday isoweekday isoformat strftime replace toordinal"
_ATTRIBUTES: Mapping[type, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        str: "capitalize casefold center count endswith find format index isalnum isalpha isdecimal isdigit islower isnumeric "
        "isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust "
        "rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill",
        list: _LIST,
        dict: _DICT,
        set: _SET,
        frozenset: "copy difference intersection isdisjoint issubset issuperset symmetric_difference union",
        tuple: "count index",
        int: "bit_length",
        float: "is_integer",
        defaultdict: _DICT,
        OrderedDict: f"{_DICT} move_to_end",
        Counter: f"{_DICT} elements most_common total",
        deque: "append appendleft clear extend extendleft pop popleft rotate",
        datetime.date: _DATE,
        datetime.datetime: f"{_DATE} hour minute second microsecond date time timestamp",
        datetime.time: "hour minute second microsecond isoformat strftime",
        datetime.timedelta: "days seconds microseconds total_seconds",
        re.Pattern: "findall finditer fullmatch match search split sub",
        re.Match: "end group groupdict groups span start",
        Caught: "args",
        **columns.ATTRIBUTES,
        **frames.ATTRIBUTES,
    }.items()
}
# Types of which a script may use methods by the type's name.
_OF_TYPES: Mapping[type, frozenset[str]] = {
    datetime.datetime: frozenset({"strptime", "fromisoformat", "combine"}),
    datetime.date: frozenset({"fromisoformat", "fromordinal"}),
    dict: frozenset({"fromkeys"}),
}


def attribute(value: Any, name: str) -> Any:
    """Return an attribute of a value, if scripts may use it on values of this type; otherwise raise ``AttributeError``.

    >>> attribute("a-b", "split")("-"), attribute("{} and {n}", "format")(1, n=2)
    (['a', 'b'], '1 and 2')
    """
    if isinstance(value, Module):
        if name in value.names:
            return value.names[name]
        raise AttributeError(f"{value.name}.{name} cannot be used here; there are {', '.join(sorted(value.names))}")
    if isinstance(value, (Table, Row)) and name in (value.columns if isinstance(value, Table) else value):
        return value[name]
    allowed = _OF_TYPES.get(value, frozenset()) if isinstance(value, type) else _ATTRIBUTES.get(type(value), frozenset[str]())
    if name not in allowed:
        has = f"it has {', '.join(sorted(allowed))}" if allowed else "it has none"
        if isinstance(value, Table):
            has += "; and the names of its columns; FilterDB, GetValue, len(table) and table['COLUMN'] read it"
        raise AttributeError(f"{_kind(value)} has no attribute {name!r} here; {has}")
    if name == "format" and isinstance(value, str):
        return _Formatting(value)
    return getattr(value, name)


def _kind(value: Any) -> str:
    return "a type" if isinstance(value, type) else f"an object of type {type(value).__name__}"


class _Formatting(string.Formatter):
    """``str.format`` for scripts: a field may have no dots or brackets, which would reach into a value."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, *args: Any, **keywords: Any) -> str:
        return self.vformat(self._text, args, keywords)

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the value of a field, which must be a number or a name."""
        if not re.fullmatch(r"\w*", field_name):
            raise ValueError(f"a field of format must be a number or a name, not {field_name!r}")
        key: int | str = int(field_name) if field_name.isdecimal() else field_name
        return self.get_value(key, args, kwargs), field_name
