"""The memory for tool-calling agents, over the Model Context Protocol: ``cascade-memory serve mcp --path DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.mcp_server.connection import settings
    from cascade_memory.mcp_server.guard import Guard
    from cascade_memory.mcp_server.sdk import http_app
    from cascade_memory.mcp_server.server import build

__all__ = ["Guard", "build", "http_app", "settings"]

_HOMES = {"Guard": "guard", "build": "server", "http_app": "sdk", "settings": "connection"}

_REMEDY = 'which the extra "mcp" installs: pip install "cascade-memory[mcp]"'


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES, optional=("mcp",), remedy=_REMEDY)
    return value
