"""The differences between the versions 1.x and 2.x of the MCP SDK: names, and which function takes which option."""

from __future__ import annotations

import importlib
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import INVALID_PARAMS, CallToolResult, ErrorData, JSONRPCError, JSONRPCMessage, ToolAnnotations
from pydantic import ValidationError

from cascade_memory import __version__
from cascade_memory.mcp_server.answers import refused

try:
    _home: Any = importlib.import_module("mcp.server.mcpserver")
    _server: Any = _home.MCPServer
    _is_second = True
except ModuleNotFoundError:
    _home = importlib.import_module("mcp.server.fastmcp")
    _server = _home.FastMCP
    _is_second = False

_errors: Any = importlib.import_module(f"{_home.__name__}.exceptions")
ToolError: type[Exception] = _errors.ToolError  # in both versions, its text reaches the client
ResourceError: type[Exception] = _errors.ResourceError


class _Server(_server):
    """The SDK's server, which refuses arguments with a sentence of its own."""

    async def call_tool(self, name: str, arguments: dict[str, Any], *context: Any) -> Any:
        """Call a tool by its name."""
        try:
            return await super().call_tool(name, arguments, *context)
        except ToolError as error:
            wrong = error.__cause__
            if not isinstance(wrong, ValidationError):
                raise
            (tool,) = [one for one in await self.list_tools() if one.name == name]
            properties = tool.model_dump(by_alias=True)["inputSchema"]["properties"]
            raise ToolError(refused(name, properties, wrong)) from wrong


def prompt_error(text: str) -> Exception:
    """Make the error whose text reaches the client that asked for a prompt."""
    if not _is_second:
        return ValueError(text)
    made: Exception = importlib.import_module("mcp.shared.exceptions").MCPError(INVALID_PARAMS, text)
    return made


# Stateless and plain JSON: episodes are in the ledger, so a session needs no state, and clients may reconnect at any time.
_HTTP: dict[str, Any] = {"stateless_http": True, "json_response": True}


def make(name: str, instructions: str, *, host: str) -> Any:
    """Make a server without tools. For a loopback ``host`` it checks the Host header of requests (against DNS rebinding)."""
    own: dict[str, Any] = {"version": __version__} if _is_second else {"host": host, **_HTTP}
    server = _Server(name, instructions=instructions, log_level="ERROR", **own)
    if _is_second:
        # Nothing here tells clients of changes: a stream of events would stay empty, and occupy a connection. SDK 2.3 has an
        # argument for that; 2.0 to 2.2 have not.
        inner(server)._request_handlers.pop("subscriptions/listen", None)
    else:  # its constructor takes no version, and would report that of the SDK
        inner(server).version = __version__
    return server


def inner(server: Any) -> Any:
    """Return the SDK's low-level server, which answers the messages of one client."""
    return server._lowlevel_server if _is_second else server._mcp_server


def refusal(id: str | int | None, code: int, text: str) -> SessionMessage:
    """Make the error that answers a request, even if the id of the request is unknown."""
    unchecked: Any = JSONRPCError.model_construct  # version 1.x has no type for an answer without an id
    answer = unchecked(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))
    return SessionMessage(answer if _is_second else JSONRPCMessage.model_construct(answer))


def result(text: str, data: dict[str, Any]) -> CallToolResult:
    """Answer a call with the same data twice: as text, for a model, and structured, for a program."""
    return CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "structuredContent": data})


def http_app(server: Any, *, host: str) -> Any:
    """Wrap the server as an ASGI application at ``/mcp``."""
    return server.streamable_http_app(host=host, **_HTTP) if _is_second else server.streamable_http_app()


def tool_annotations(*, read_only: bool = False, destructive: bool = False) -> ToolAnnotations:
    """Describe to clients what a tool may do, so that they can decide whether a model may call it."""
    hints = {"readOnlyHint": read_only, "destructiveHint": destructive, "openWorldHint": False}
    return ToolAnnotations.model_validate(hints)
