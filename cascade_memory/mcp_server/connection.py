"""What the server listens with on HTTP."""

from __future__ import annotations

from cascade_memory.serving.connection import Server, settings

__all__ = ["Server", "settings"]
