"""The inspector: pages that show what a memory knows, why it decided as it did, and that let people correct it.

``cascade-memory serve inspector PATH`` opens it in a browser; ``app(memory)`` is an ASGI application that a host mounts behind
its own login; ``memory.inspect()`` opens it from a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.inspector.actions import told
    from cascade_memory.inspector.running import Inspector, Listening, inspect, run
    from cascade_memory.inspector.shown import cut, is_cut
    from cascade_memory.inspector.site import app
    from cascade_memory.inspector.view import Act, Elsewhere, Missing, Rendered, View

__all__ = [
    "Act",
    "Elsewhere",
    "Inspector",
    "Listening",
    "Missing",
    "Rendered",
    "View",
    "app",
    "cut",
    "inspect",
    "is_cut",
    "run",
    "told",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "actions": "told",
        "running": "Inspector Listening inspect run",
        "shown": "cut is_cut",
        "site": "app",
        "view": "Act Elsewhere Missing Rendered View",
    },
    optional=("starlette", "jinja2", "uvicorn"),
    remedy='which the extra "inspector" installs: pip install "cascade-memory[inspector]"',
)
