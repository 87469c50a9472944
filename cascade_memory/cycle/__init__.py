"""The six steps after the query: recall, select, reuse, reward, learn, retain. No step imports another."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.cycle.chat_turns import NOTHING, Show, is_only_text, said, turns
    from cascade_memory.cycle.reuse import is_failure, render

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "chat_turns": "NOTHING Show is_only_text said turns",
        "reuse": "is_failure render",
    },
)
