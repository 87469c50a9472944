"""Puts a memory together from its parts: the only package that chooses implementations of the ports."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.assembly.owner_lock import OwnerLock
    from cascade_memory.assembly.place import place_of
    from cascade_memory.assembly.ranker_choice import resolve_ranker
    from cascade_memory.assembly.rankers import cross_encoder, light

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "owner_lock": "OwnerLock",
        "place": "place_of",
        "ranker_choice": "resolve_ranker",
        "rankers": "cross_encoder light",
    },
)
