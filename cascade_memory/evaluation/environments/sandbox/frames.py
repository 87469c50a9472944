"""Tables of the database, with the pandas methods that models use most, since the authors' own tools return pandas frames."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cascade_memory.evaluation.environments.sandbox.columns import Column, Mask, Series


class Row(dict[str, Any]):
    """A row: the values by the names of their columns."""

    def tolist(self) -> list[Any]:
        """Return the values."""
        return list(self.values())


class Table:
    """A table of the database, or some of its rows; the rows themselves stay outside the script's process.

    The script has only a number that identifies the table. What pandas would do with the rows is done here, after the columns
    that are needed for it were fetched.
    """

    def __init__(
        self,
        handle: int,
        columns: Sequence[str],
        rows: int,
        column: Callable[[Table, str], list[Any]],
        places: Sequence[int] | None = None,
        whole: Table | None = None,  # of which this has the rows at these places
    ) -> None:
        self.handle, self.columns, self._column = handle, Column(columns), column
        self._rows, self._places, self._whole = rows, places, whole or self
        self.shape = (len(self), len(self.columns))
        self.empty = len(self) == 0

    @property
    def is_whole(self) -> bool:
        """Whether this has all rows of the table outside the process; tools accept no other tables."""
        return self._places is None

    def __len__(self) -> int:
        return self._rows if self._places is None else len(self._places)

    def __getitem__(self, name: object) -> Any:
        """Return a column by its name, some columns, or the rows where a condition is true."""
        if isinstance(name, Mask):
            return self.of([place for place, chosen in zip(self.places, name, strict=True) if chosen])
        if isinstance(name, list) and all(one in self.columns for one in list(name)):
            return Table(self.handle, list(name), self._rows, self._column, self.places, self._whole)
        if not isinstance(name, str):
            raise TypeError("a table gives one column by its name: table['COLUMN'], or its rows by a condition")
        found = self._column(self._whole, name)
        return Column(found if self._places is None else map(found.__getitem__, self._places))

    def __iter__(self) -> Any:
        raise TypeError("a table is not a list: use table['COLUMN'], iterrows(), GetValue or SQLInterpreter")

    def __repr__(self) -> str:
        return f"a table of {len(self):,} rows with the columns {', '.join(self.columns)}"

    @property
    def iloc(self) -> _Places:
        """Rows by their places."""
        return _Places(self)

    @property
    def loc(self) -> _Conditions:
        """Rows by a condition or by their places, and optionally one column of them."""
        return _Conditions(self)

    def head(self, n: int = 5) -> Table:
        """Return the first rows."""
        return self.of(self.places[:n])

    def tail(self, n: int = 5) -> Table:
        """Return the last rows."""
        return self.of(self.places[len(self) - min(n, len(self)) :])

    def sort_values(self, by: Any, ascending: bool = True) -> Table:
        """Return the rows in the order of a column; rows without a value come last."""
        values = self[by[0] if isinstance(by, list) else by]
        numbered = [one for one in zip(list(values), self.places, strict=True) if one[0] is not None]
        missing = [place for value, place in zip(list(values), self.places, strict=True) if value is None]
        ordered = sorted(numbered, key=lambda one: one[0], reverse=not ascending)
        return self.of([*(place for _, place in ordered), *missing])

    def drop_duplicates(self, subset: Any = None) -> Table:
        """Return the first row of each combination of values in the columns ``subset``; None means all columns."""
        names = self.columns if subset is None else [subset] if isinstance(subset, str) else subset
        first: dict[Any, int] = {}
        for place, key in zip(self.places, zip(*(list(self[name]) for name in names), strict=True), strict=True):
            first.setdefault(key, place)
        return self.of(list(first.values()))

    def iterrows(self) -> Iterator[tuple[int, Row]]:
        """Return each row with its number."""
        return iter(list(enumerate(self.rows())))

    def to_dict(self, orient: str = "list") -> Any:
        """Return a list of values for each column; with "records", return the rows."""
        return self.rows() if orient == "records" else {name: list(self[name]) for name in self.columns}

    def groupby(self, name: str) -> _Groups:
        """Group the rows by the values of a column."""
        return _Groups(self, name)

    def rows(self) -> list[Row]:
        """Return all rows."""
        values = [list(self[name]) for name in self.columns]
        return [Row(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]

    @property
    def places(self) -> Sequence[int]:
        """The indices of the rows in the table outside the process."""
        return range(self._rows) if self._places is None else self._places

    def of(self, places: Sequence[int]) -> Table:
        """Return a table of the rows that have these indices in the table outside the process."""
        return Table(self.handle, list(self.columns), self._rows, self._column, places, self._whole)


class _Places:
    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, tuple):
            row, column = at
            return self._table[self._table.columns[column]][row]
        if isinstance(at, slice):
            return self._table.of(self._table.places[at])
        return self._table.of([self._table.places[at]]).rows()[0]


class _Conditions:
    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, tuple):
            rows, column = at
            return self[rows][column]
        return self._table[at] if isinstance(at, Mask) else self._table.iloc[at]


_OF_GROUPS = "count sum mean max min nunique"


class _Groups:
    """Rows in groups; its methods compute one value for each group, such as the sum of a column."""

    def __init__(self, table: Table, name: str, of: str | None = None) -> None:
        self._table, self._name, self._of = table, name, of

    def __getitem__(self, of: str) -> _Groups:
        return _Groups(self._table, self._name, of)

    def size(self) -> Series:
        """Count the rows of each group."""
        return self._each(len)

    def __getattr__(self, name: str) -> Callable[[], Series]:
        """Return a function that calls the method ``name`` of ``Column`` on the values of each group."""
        if name not in _OF_GROUPS.split():
            raise AttributeError(name)
        return lambda: self._each(operator.methodcaller(name))

    def _each(self, put_together: Callable[[Column], Any]) -> Series:
        groups: dict[Any, Column] = {}
        for key, value in zip(list(self._table[self._name]), list(self._table[self._of or self._name]), strict=True):
            if key is not None:
                groups.setdefault(key, Column()).append(value)
        return Series((key, put_together(groups[key])) for key in sorted(groups))


# The attributes that a script may use, besides the names of the columns.
ATTRIBUTES: Mapping[type, str] = {
    Row: "get items keys values tolist",
    Table: "columns empty shape iloc loc head tail sort_values drop_duplicates iterrows to_dict groupby",
    _Groups: f"size {_OF_GROUPS}",
}
