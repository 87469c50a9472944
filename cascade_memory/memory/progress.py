"""A bar for long work, nothing for short."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def progress_bar(items: Iterable[Item], what: str, *, show: bool | None, total: int | None = None) -> Iterable[Item]:
    """Return ``items``, counted on a terminal or in a notebook. ``show=None``: only there, and only when it takes a while."""
    if show is False:
        return items
    from tqdm.auto import tqdm

    return tqdm(items, desc=what, total=total, disable=None if show is None else False, delay=0.5, leave=False)
