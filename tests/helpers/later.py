"""Imports a heavy package when a test first uses it: each process that runs tests collects all of them."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """Stands for a module until somebody asks for something in it.

    frameworks.py says which files are left out where the module is not installed.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks every name of a test file what it is
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
