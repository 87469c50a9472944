"""HTTP servers for clients that cannot be trusted: what the MCP server and the inspector listen with."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.serving.asgi import App, Receive, Scope, Send
    from cascade_memory.serving.connection import Server, settings
    from cascade_memory.serving.crowd import VOUCH

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "asgi": "App Receive Scope Send",
        "connection": "Server settings",
        "crowd": "VOUCH",
    },
)
