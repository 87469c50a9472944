"""Scores that people, models and programs gave on other platforms, and what they teach."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.capabilities.scores.score import Score, Unread

# What a collector needs.
__all__ = ["Score", "Unread"]

__getattr__, __dir__ = door(__name__, {"score": "Score Unread"})
