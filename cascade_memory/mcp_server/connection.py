"""The HTTP server that the MCP server runs on, and its settings."""

from __future__ import annotations

from cascade_memory.serving.connection import Server, settings

__all__ = ["Server", "settings"]
