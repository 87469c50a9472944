"""Imports names at their first use, so that only users of a framework load it."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from typing import Any

from cascade_memory.errors import MissingExtra


def load(package: str, name: str, homes: Mapping[str, str], *, optional: Collection[str] = (), remedy: str = "") -> Any:
    """Import a name of a package from its home module; if an optional package is missing, the error names the remedy.

    >>> load("cascade_memory.domain", "Case", {"Case": "case"}).__name__
    'Case'
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in optional:
            raise
        raise MissingExtra(f"{package}.{name} needs {error.name}, {remedy}") from error
