"""Addresses of pages, below the place where the application is mounted; ids and namespaces follow the question mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlencode

Link: TypeAlias = Callable[..., str]


def linking(root: str, namespace: str) -> Link:
    """Return a function that writes addresses: ids and namespaces may be any text, so they are never part of a path.

    >>> linking("/memory", "a/b")("case", id="x y", sort=None)
    '/memory/case?ns=a%2Fb&id=x+y'
    """

    def link(page: str, **query: Any) -> str:
        given = {"ns": namespace, **{name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}}
        return f"{root}/{page}?{urlencode(given, errors='replace')}"

    return link
