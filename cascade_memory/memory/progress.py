"""A progress bar for long operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def progress_bar(items: Iterable[Item], what: str, *, show: bool | None, total: int | None = None) -> Iterable[Item]:
    """Wrap ``items`` in a progress bar; ``show=None`` shows it only on a terminal or in a notebook, if it takes long."""
    if show is False:
        return items
    from tqdm.auto import tqdm

    return tqdm(items, desc=what, total=total, disable=None if show is None else False, delay=0.5, leave=False)
