"""``cascade-memory serve``: a memory for agents over MCP, or for people in a browser, until it is stopped."""

from __future__ import annotations

from cascade_memory.cli import inspecting, serving
from cascade_memory.cli.groups import Commands


def add(groups: Commands) -> None:
    """Add the group."""
    serve = groups.group("serve", "offer a memory to agents over MCP, or to people in the browser")
    serving.add(serve)
    inspecting.add(serve)
