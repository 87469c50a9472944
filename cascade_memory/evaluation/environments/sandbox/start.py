"""Starts ``child`` without importing the packages above it, which would load much that a script's process does not need."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

_HERE = "cascade_memory.evaluation.environments.sandbox"


def start() -> None:
    """Run the process of one script."""
    names, folder = _HERE.split("."), os.path.dirname(os.path.abspath(__file__))
    for depth in range(len(names), 0, -1):
        package = ModuleType(".".join(names[:depth]))
        package.__path__ = [folder]
        sys.modules[package.__name__] = package
        folder = os.path.dirname(folder)
    importlib.import_module(f"{_HERE}.child").main()


if __name__ == "__main__":
    start()
