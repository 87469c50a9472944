"""The rows of warnings that a ledger or an open memory has."""

from __future__ import annotations

from inside import engine_of

from cascade_memory.capabilities.warnings.engine_part import WarningDesk
from cascade_memory.capabilities.warnings.rows import WarningRows
from cascade_memory.ledger.core import Ledger
from cascade_memory.memory.bound import Bound
from cascade_memory.runs.adapter import Adapter


def rows_in(ledger: Ledger) -> WarningRows:
    """Return the rows of a ledger."""
    return WarningRows(ledger.connections)


def rows_of(memory: Bound | Adapter) -> WarningRows:
    """Return the very object that an open memory asks."""
    (desk,) = (part for part in engine_of(memory).capable if isinstance(part, WarningDesk))
    return desk.rows
