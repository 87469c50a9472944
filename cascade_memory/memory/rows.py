"""What ``all()`` of a noun and the audit log return: rows that are read during the iteration, and that can be displayed.

They are read page by page: each row comes with its key, and a page begins after the last key of the page before.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from cascade_memory.domain.display import quoted, shorten
from cascade_memory.domain.trajectory import Trajectory, solution_text
from cascade_memory.domain.viewed import Page
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import as_moment

T = TypeVar("T")
Row = TypeVar("Row")
AT_ONCE = 100  # rows that are read at once by what goes through all of them
_PLACE = re.compile(r"(-?\d{1,24}(?:\.\d{1,24})?(?:e[-+]?\d{1,3})?):(\d{1,18})", re.ASCII)
_SEEN = 5  # rows that are shown
_WIDTH = 60  # characters of a cell
_COLUMNS = {
    "at": "when",
    "created_at": "stored",
    "opened_at": "opened",
    "actor": "who",
    "changed": "what",
    "query": "task",
    "solution": "solution",
    "status": "status",
    "reward": "reward",
    "source": "source",
}


def through_pages(read: Callable[[int | None], Sequence[tuple[int, T]]]) -> Iterator[T]:
    """Yield the rows of one page after the other; ``read`` returns the page after a key, and an empty page at the end.

    >>> rows = [(1, "a"), (2, "b"), (3, "c")]
    >>> list(through_pages(lambda after: [row for row in rows if row[0] > (after or 0)][:2]))
    ['a', 'b', 'c']
    """
    after: int | None = None
    while page := read(after):
        yield from (one for _, one in page)
        after = page[-1][0]


def page_of(found: Sequence[tuple[int, T]], limit: int) -> Page[T]:
    """Make a page of the first ``limit`` rows. If more rows than these were found, another page follows.

    >>> page_of([(7, "a"), (9, "b"), (12, "c")], limit=2)
    Page(items=('a', 'b'), after='0.0:9')
    """
    following = place_after((0.0, found[limit - 1][0])) if len(found) > limit else None
    return Page(items=tuple(one for _, one in found[:limit]), after=following)


def place_after(pair: tuple[float, int]) -> str:
    """Return a text that says where the next page begins: after a row, given by the value it is sorted by and its key."""
    return f"{pair[0]!r}:{pair[1]}"


def place_of(after: str) -> tuple[float, int]:
    """Return the pair (value, key) from a text that ``place_after`` has made.

    >>> place_of("0.5:12")
    (0.5, 12)
    """
    found = _PLACE.fullmatch(after) if isinstance(after, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None or not math.isfinite(float(found[1])):
        raise InvalidInput(f"after must be the ``after`` of a page, not {quoted(after)}")
    return float(found[1]), int(found[2])


class Rows(Generic[Row]):
    """An iterator over rows. Displaying it shows the first rows that are left, and consumes none.

    >>> rows = Rows("numbers", iter([1, 2, 3]))
    >>> rows
    numbers: the first rows; iterate to read them
      1
      2
      3
    >>> list(rows)
    [1, 2, 3]
    """

    def __init__(self, name: str, found: Iterator[Row]) -> None:
        self._name, self._found = name, found
        self._ahead: deque[Row] = deque()  # rows that were looked at, and are still to come
        self._failed: Exception | None = None  # what the next one that iterates gets

    def __iter__(self) -> Rows[Row]:
        """Return this same object."""
        return self

    def __next__(self) -> Row:
        """Return the next row."""
        if self._ahead:
            return self._ahead.popleft()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        return next(self._found)

    def _look(self) -> tuple[list[Row], str]:
        """Return the first rows, and what to say about them."""
        try:
            self._ahead.extend(itertools.islice(self._found, max(0, _SEEN - len(self._ahead))))
        except Exception as error:  # noqa: BLE001 - looking never fails
            self._failed = error
        rows = list(self._ahead)[:_SEEN]
        if self._failed is not None:
            return rows, f"reading them failed: {shorten(str(self._failed), _WIDTH)}"
        return rows, "the first rows; iterate to read them" if rows else "no rows are left"

    def __repr__(self) -> str:
        """Show the first rows, each in one line."""
        rows, said = self._look()
        return "\n  ".join([f"{self._name}: {said}", *("  ".join(_cells(row).values()) or repr(row) for row in rows)])

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Grid

        rows, said = self._look()
        cells = [_cells(row) for row in rows]
        return Card(self._name, said, [Grid(list(cells[0]), [list(one.values()) for one in cells])] if cells else []).html()


def _cells(row: object) -> dict[str, str]:
    """Return the cells that are shown of a row, by the name of the column."""
    return {head: _cell(name, getattr(row, name)) for name, head in _COLUMNS.items() if hasattr(row, name)}


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    text = solution_text(value) if isinstance(value, Trajectory) else as_moment(name, value) or str(value)
    return shorten(text, _WIDTH)
