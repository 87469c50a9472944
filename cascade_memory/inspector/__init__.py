"""The inspector: pages that show what a memory knows, why it decided as it did, and that let people correct it.

``cascade-memory serve inspector PATH`` opens it in a browser; ``app(memory)`` is an ASGI application that a host mounts behind
its own login; ``memory.inspect()`` opens it from a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.inspector.running import Inspector, Listening, inspect, run
    from cascade_memory.inspector.site import app

__all__ = ["Inspector", "Listening", "app", "inspect", "run"]

_HOMES = {"Inspector": "running", "Listening": "running", "app": "site", "inspect": "running", "run": "running"}
_OPTIONAL = ("starlette", "jinja2", "uvicorn")
_REMEDY = 'which the extra "inspector" installs: pip install "cascade-memory[inspector]"'


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES, optional=_OPTIONAL, remedy=_REMEDY)
    return value
