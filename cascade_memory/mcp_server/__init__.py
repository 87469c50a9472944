"""The memory for tool-calling agents, over the Model Context Protocol: ``cascade-memory serve --path DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.assembly.lazy import load

if TYPE_CHECKING:
    from cascade_memory.mcp_server.server import build

__all__ = ["build"]

_REMEDY = 'which the extra "mcp" brings: pip install "cascade-memory[mcp]"'


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, {"build": "server"}, optional=("mcp",), remedy=_REMEDY)
    return value
