"""The memory for tool-calling agents, over the Model Context Protocol: ``cascade-memory serve mcp --path DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.mcp_server.connection import settings
    from cascade_memory.mcp_server.guard import Guard
    from cascade_memory.mcp_server.sdk import http_app
    from cascade_memory.mcp_server.server import build

__all__ = ["Guard", "build", "http_app", "settings"]

__getattr__, __dir__ = door(
    __name__,
    {
        "connection": "settings",
        "guard": "Guard",
        "sdk": "http_app",
        "server": "build",
    },
    optional=("mcp",),
    remedy='which the extra "mcp" installs: pip install "cascade-memory[mcp]"',
)
