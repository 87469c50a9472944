"""The ledger: one SQLite file that holds everything acknowledged, the source of truth."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger
    from cascade_memory.ledger.database import Connection
    from cascade_memory.ledger.declaring import (
        BLOB,
        INTEGER,
        REAL,
        TEXT,
        UNDONE,
        ActionKind,
        Column,
        Index,
        Table,
        between,
        one_of,
        whole,
    )
    from cascade_memory.ledger.observer import Observer, Standing
    from cascade_memory.ledger.sqlite import SQLiteLedger

# What a capability needs to declare its tables, and to hear of a transaction.
__all__ = [
    "BLOB",
    "INTEGER",
    "REAL",
    "TEXT",
    "UNDONE",
    "ActionKind",
    "Column",
    "Connection",
    "Index",
    "Observer",
    "Standing",
    "Table",
    "between",
    "one_of",
    "whole",
]

# The benchmark, the contract tests and the inspector use the ledger itself. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "core": "Ledger",
        "database": "Connection",
        "declaring": "BLOB INTEGER REAL TEXT UNDONE ActionKind Column Index Table between one_of whole",
        "observer": "Observer Standing",
        "sqlite": "SQLiteLedger",
    },
)
