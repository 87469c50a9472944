"""Decides which messages of a conversation are tasks."""

from __future__ import annotations

from cascade_memory.conversation.turns import Kind, is_small_talk, kind_of, task_in

__all__ = ["Kind", "is_small_talk", "kind_of", "task_in"]
