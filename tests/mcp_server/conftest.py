"""Fixtures of the MCP server's tests."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from cascade_memory import CascadeMemory


@pytest.fixture(autouse=True)
def forgotten_sockets() -> Iterator[None]:
    """The clients' libraries leave connections to be closed by the garbage collector: not in the middle of the next test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with a case in it, made with the embedder that needs no model."""
    path = tmp_path / "memory"
    with CascadeMemory(path, embedder="hashing") as memory:
        memory.add("heat some cup and put it in cabinet", "take cup, microwave it, open cabinet, put cup")
    return path
