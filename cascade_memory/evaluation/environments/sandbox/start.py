"""Starts ``child`` without importing the packages above it, which would load much that a script's process does not need."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

_HERE = "cascade_memory.evaluation.environments.sandbox"


def start() -> None:
    """Run the process of one script."""
    folders = Path(__file__).resolve().parents
    names = _HERE.split(".")
    for depth in range(1, len(names) + 1):
        package = ModuleType(".".join(names[:depth]))
        package.__path__ = [str(folders[len(names) - depth])]
        sys.modules[package.__name__] = package
    importlib.import_module(f"{_HERE}.child").main()


if __name__ == "__main__":
    start()
