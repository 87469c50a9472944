"""The ledger: one SQLite file that holds everything acknowledged, the source of truth."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.ledger.sqlite import SQLiteLedger

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "sqlite": "SQLiteLedger",
    },
)
