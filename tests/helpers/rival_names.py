"""The names of the other memories as parameters of tests: one whose package is missing is skipped."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import pytest

PACKAGES = {"LangGraph's store": "langgraph"}


def is_installed(name: str) -> bool:
    """Say whether a memory can be made here."""
    return name not in PACKAGES or find_spec(PACKAGES[name]) is not None


def parameters(names: Iterable[str], *, slow: Iterable[str] = ()) -> list[Any]:
    """Return parameters for ``pytest.mark.parametrize``."""
    found: list[Any] = []
    for name in names:
        marks = [pytest.mark.skipif(not is_installed(name), reason=f"needs {PACKAGES.get(name)}")]
        found.append(pytest.param(name, marks=[*marks, *([pytest.mark.slow] if name in slow else [])]))
    return found
