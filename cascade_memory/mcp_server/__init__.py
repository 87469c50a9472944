"""The memory for tool-calling agents, over the Model Context Protocol: ``cascade-memory serve --path DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.errors import MissingExtra

if TYPE_CHECKING:
    from cascade_memory.mcp_server.server import build

__all__ = ["build"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from cascade_memory.mcp_server.server import build
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise MissingExtra('the MCP server needs the extra "mcp": pip install "cascade-memory[mcp]"') from error
    return build
