"""Columns of a table, with the methods of a pandas series that models write most."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


def mean(values: Iterable[Any]) -> float:
    """Compute the mean."""
    numbers = list(values)
    if not numbers:
        raise ValueError("the mean of no values")
    return sum(numbers) / len(numbers)


def median(values: Iterable[Any]) -> Any:
    """Compute the median."""
    numbers = sorted(values)
    if not numbers:
        raise ValueError("the median of no values")
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


class Column(list[Any]):
    """The values of a column: a list that also has methods of a pandas series."""

    @property
    def values(self) -> Column:
        """The values, with the methods of an array."""
        return self

    @property
    def iloc(self) -> Column:
        """The values by their places."""
        return self

    @property
    def str(self) -> Texts:
        """The values as texts."""
        return Texts(self)

    @property
    def empty(self) -> bool:
        """Whether there is no value."""
        return not len(self)

    def __getitem__(self, at: Any) -> Any:
        """Return one value, the values of a slice, or those where a mask is true."""
        if isinstance(at, Mask):
            return type(self)(value for value, chosen in zip(self, at, strict=True) if chosen)
        return type(self)(list.__getitem__(self, at)) if isinstance(at, slice) else list.__getitem__(self, at)

    def _compared(self, other: Any, compare: Callable[[Any, Any], Any]) -> Mask:
        others = other if isinstance(other, Column) else [other] * len(self)
        return Mask(
            one is not None and two is not None and bool(compare(one, two)) for one, two in zip(self, others, strict=True)
        )

    def __eq__(self, other: object) -> Any:
        """Say of each value whether it equals ``other``; if ``other`` is a plain list, say whether the lists are equal."""
        if isinstance(other, list) and not isinstance(other, Column):
            return list.__eq__(self, other)
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        """Say of each value whether it differs from ``other``; if ``other`` is a plain list, say whether the lists differ."""
        if isinstance(other, list) and not isinstance(other, Column):
            return list.__ne__(self, other)
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        """Say of each value whether it is less than ``other``, which may be a column with as many values."""
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        """Say of each value whether it is at most ``other``, which may be a column with as many values."""
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        """Say of each value whether it is greater than ``other``, which may be a column with as many values."""
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        """Say of each value whether it is at least ``other``, which may be a column with as many values."""
        return self._compared(other, operator.ge)

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[Any]:
        """Return a plain list."""
        return list(self)

    to_list = tolist

    def item(self) -> Any:
        """Return the only value."""
        if len(self) != 1:
            raise ValueError(f"item() needs exactly one value, not {len(self)}")
        return self[0]

    def unique(self) -> Column:
        """Return each value once, in the order in which they come."""
        return Column(dict.fromkeys(self))

    drop_duplicates = unique

    def nunique(self) -> int:
        """Count the different values."""
        return len(set(self._known()))

    def isin(self, others: Iterable[Any]) -> Mask:
        """Say of each value whether it is among others."""
        wanted = list(others)
        return Mask(one in wanted for one in self)

    def isna(self) -> Mask:
        """Say of each value whether it is missing."""
        return Mask(one is None for one in self)

    isnull = isna

    def notna(self) -> Mask:
        """Say of each value whether it is not missing."""
        return Mask(one is not None for one in self)

    notnull = notna

    def dropna(self) -> Column:
        """Return the values that are not missing."""
        return Column(self._known())

    def astype(self, kind: Any) -> Column:
        """Return the values as int, float or str."""
        kinds: dict[Any, Any] = {"int": int, "int64": int, "float": float, "float64": float, "str": str, "string": str}
        return Column(map(kinds.get(kind, kind), self))

    def apply(self, function: Callable[[Any], Any]) -> Column:
        """Return what a function makes of each value."""
        return Column(map(function, self))

    map = apply

    def sum(self) -> Any:
        """Add the values that are not missing."""
        return sum(self._known())

    def mean(self) -> float:
        """Compute the mean of the values that are not missing."""
        known = self._known()
        return mean(known) if known else math.nan

    def median(self) -> Any:
        """Compute the median of the values that are not missing."""
        known = self._known()
        return median(known) if known else math.nan

    def max(self) -> Any:
        """Return the largest value."""
        return max(self._known(), default=math.nan)

    def min(self) -> Any:
        """Return the smallest value."""
        return min(self._known(), default=math.nan)

    def count(self, value: Any = None) -> int:
        """Count the values that are not missing or, as a list does, those that equal ``value``."""
        return len(self._known()) if value is None else list.count(self, value)

    def head(self, n: int = 5) -> Column:
        """Return the first values."""
        return self[:n]

    def tail(self, n: int = 5) -> Column:
        """Return the last values."""
        return self[len(self) - min(n, len(self)) :]

    def sort_values(self, ascending: bool = True) -> Column:
        """Return the values in order."""
        return Column(sorted(self._known(), reverse=not ascending))

    def value_counts(self) -> Series:
        """Count each value, the most frequent first."""
        return Series(Counter(self._known()).most_common())

    def _known(self) -> list[Any]:
        return [one for one in self if one is not None]


class Mask(Column):
    """Whether a condition is true, for each row."""

    def __and__(self, other: Any) -> Mask:
        """Say for which rows both masks are true."""
        return Mask(one and two for one, two in zip(self, other, strict=True))

    def __or__(self, other: Any) -> Mask:
        """Say for which rows at least one of the masks is true."""
        return Mask(one or two for one, two in zip(self, other, strict=True))

    def __invert__(self) -> Mask:
        """Say for which rows the condition is false."""
        return Mask(not one for one in self)

    def __bool__(self) -> bool:
        """Raise an error, since a mask has one truth value for each row."""
        raise ValueError("a condition over a column has a truth for each row: use .any() or .all(), or table[condition]")

    def any(self) -> bool:
        """Say whether the condition is true for any row."""
        return any(list(self))

    def all(self) -> bool:
        """Say whether the condition is true for all rows."""
        return all(list(self))


class Series(Column):
    """Values with names, as the pandas methods ``value_counts`` and ``groupby`` return them."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        named = list(pairs)
        super().__init__(value for _, value in named)
        self.index: Any = Column(name for name, _ in named)  # a list has a method of this name

    def __getitem__(self, at: Any) -> Any:
        """Return the value with this name or at this index, or the values of a slice with their names."""
        if isinstance(at, slice):
            return Series(list(self.items())[at])
        if at in list(self.index):
            return list.__getitem__(self, list(self.index).index(at))
        return Column(self)[at]

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return the names with their values."""
        return iter([*zip(self.index, list(self), strict=True)])

    def to_dict(self) -> dict[Any, Any]:
        """Return a dictionary from the names to the values."""
        return dict(self.items())

    def idxmax(self) -> Any:
        """Return the name of the largest value."""
        return max(self.items(), key=lambda pair: pair[1])[0]

    def idxmin(self) -> Any:
        """Return the name of the smallest value."""
        return min(self.items(), key=lambda pair: pair[1])[0]

    def sort_values(self, ascending: bool = True) -> Series:
        """Return the values in order, with their names."""
        return Series(sorted(self.items(), key=lambda pair: pair[1], reverse=not ascending))


class Texts:
    """The methods of a column of texts, behind ``.str``."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def lower(self) -> Column:
        """Return the texts in small letters."""
        return Column(None if one is None else str(one).lower() for one in self._column)

    def strip(self) -> Column:
        """Return the texts without the space around them."""
        return Column(None if one is None else str(one).strip() for one in self._column)

    def contains(self, part: str, case: bool = True, na: Any = False, regex: bool = False) -> Mask:
        """Say of each text whether it contains ``part``, which is never read as a pattern."""
        del na, regex
        wanted = part if case else part.lower()
        return Mask(one is not None and wanted in (str(one) if case else str(one).lower()) for one in self._column)

    def startswith(self, part: str) -> Mask:
        """Say of each text whether it begins with ``part``."""
        return Mask(one is not None and str(one).startswith(part) for one in self._column)


_LIST = "append clear copy count extend index insert pop remove reverse sort"
_COLUMN = (
    f"{_LIST} values iloc str empty tolist to_list item unique drop_duplicates nunique isin isna isnull notna notnull dropna "
    "astype apply map sum mean median max min head tail sort_values value_counts"
)
# The attributes that a script may use.
ATTRIBUTES: Mapping[type, str] = {
    Column: _COLUMN,
    Mask: f"{_COLUMN} any all",
    Series: f"{_COLUMN} index items to_dict idxmax idxmin",
    Texts: "lower strip contains startswith",
}
