"""The public methods of a memory. They check the arguments and call the engine."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.memory.capable import Capable
    from cascade_memory.memory.explaining import explained, explained_rows
    from cascade_memory.memory.memory import Memory
    from cascade_memory.memory.progress import progress_bar

__all__ = ["Capable", "explained"]  # for the noun of a capability

# The benchmark, the contract tests and the inspector use the other names. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "capable": "Capable",
        "explaining": "explained explained_rows",
        "memory": "Memory",
        "progress": "progress_bar",
    },
)
