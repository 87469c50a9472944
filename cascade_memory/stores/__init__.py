"""Searches for the nearest vectors: an exact scan in RAM, and Chroma on disk or on a server."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.stores.index import ExactIndex

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "index": "ExactIndex",
    },
)
