"""Scores that people, models and programs gave on other platforms, and what they teach."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.capabilities.scores.score import Score, Unread
    from cascade_memory.capabilities.scores.webhook import Webhook, signature

# What a collector needs, and what a host mounts.
__all__ = ["Score", "Unread", "Webhook", "signature"]

__getattr__, __dir__ = door(__name__, {"score": "Score Unread", "webhook": "Webhook signature"})
