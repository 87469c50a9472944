"""The inspector: pages that show what a memory knows, why it decided as it did, and that let people correct it.

``cascade-memory serve inspector PATH`` opens it in a browser; ``app(memory)`` is an ASGI application that a host mounts behind
its own login; ``memory.inspect()`` opens it from a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.inspector.running import Inspector, Listening, inspect, run
    from cascade_memory.inspector.site import app
    from cascade_memory.inspector.view import Missing, Rendered, View

__all__ = ["Inspector", "Listening", "Missing", "Rendered", "View", "app", "inspect", "run"]

__getattr__, __dir__ = door(
    __name__,
    {
        "running": "Inspector Listening inspect run",
        "site": "app",
        "view": "Missing Rendered View",
    },
    optional=("starlette", "jinja2", "uvicorn"),
    remedy='which the extra "inspector" installs: pip install "cascade-memory[inspector]"',
)
