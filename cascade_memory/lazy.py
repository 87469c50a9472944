"""Imports names at their first use, so that only users of a framework load it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from cascade_memory.errors import MissingExtra


def load(package: str, name: str, homes: Mapping[str, str], *, optional: Collection[str] = (), remedy: str = "") -> Any:
    """Import a name of a package from its home module.

    ``homes`` says which module defines which name. If one of the ``optional`` packages is missing, the error names the
    ``remedy``.

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
        raise MissingExtra(f"{name} needs the package {error.name}, {remedy}") from error


def door(
    package: str, modules: Mapping[str, str], *, optional: Collection[str] = (), remedy: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that imports the names of its modules at their first use.

    ``modules`` says which module defines which names: ``{"case": "Case ExpiredCase"}``. If a module needs one of the
    ``optional`` packages and that package is missing, the error names the ``remedy``.

    >>> find, names = door("cascade_memory.domain", {"case": "Case ExpiredCase"})
    >>> find("Case").__name__, "ExpiredCase" in names()
    ('Case', True)
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        value = load(package, name, homes, optional=optional, remedy=remedy)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes})
