"""The one place that knows which version of the MCP SDK there is: 1.x and 2.x differ in names and in who takes which option."""

from __future__ import annotations

import importlib
from typing import Any

from mcp.types import ToolAnnotations

try:
    _home: Any = importlib.import_module("mcp.server.mcpserver")
    _server: Any = _home.MCPServer
    _is_second = True
except ModuleNotFoundError:
    _home = importlib.import_module("mcp.server.fastmcp")
    _server = _home.FastMCP
    _is_second = False

_errors: Any = importlib.import_module(f"{_home.__name__}.exceptions")
ToolError: type[Exception] = _errors.ToolError  # its text reaches the client, in both
ResourceError: type[Exception] = _errors.ResourceError

# Stateless and plain JSON: episodes live in the ledger, so a session has nothing to keep, and clients may come and go.
_HTTP: dict[str, Any] = {"stateless_http": True, "json_response": True}


def make(name: str, instructions: str, *, host: str) -> Any:
    """Return a server without tools; for a loopback ``host`` it checks that requests were meant for one."""
    listening = {} if _is_second else {"host": host, **_HTTP}
    return _server(name, instructions=instructions, log_level="ERROR", **listening)


def http_app(server: Any, *, host: str) -> Any:
    """Return the server as an ASGI application that answers under ``/mcp``."""
    return server.streamable_http_app(host=host, **_HTTP) if _is_second else server.streamable_http_app()


def tool_annotations(*, read_only: bool = False, destructive: bool = False) -> ToolAnnotations:
    """Return what a client is told of a tool before it lets a model call it."""
    hints = {"readOnlyHint": read_only, "destructiveHint": destructive, "openWorldHint": False}
    return ToolAnnotations.model_validate(hints)
