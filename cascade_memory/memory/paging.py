"""Reads stored rows page by page: each row comes with its key, and a page begins after the last key of the page before."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.viewed import Page
from cascade_memory.errors import InvalidInput

T = TypeVar("T")
AT_ONCE = 100  # rows that are read at once by what goes through all of them
_PLACE = re.compile(r"(-?\d{1,24}(?:\.\d{1,24})?(?:e[-+]?\d{1,3})?):(\d{1,18})", re.ASCII)


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
