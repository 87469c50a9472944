"""What lies behind a memory: the one place where tests reach for it."""

from __future__ import annotations

from cascade_memory.engine.engine import Engine
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.memory.handle import Handle
from cascade_memory.runs.adapter import Adapter


def engine_of(memory: Handle | Adapter) -> Engine:
    """Return the engine behind a memory, or behind a framework's door to one."""
    handle = memory.engine if isinstance(memory, Adapter) else memory
    return handle._engine


def state_of(memory: Handle | Adapter, namespace: str = "default") -> NamespaceState:
    """Return what the engine knows of a namespace."""
    return engine_of(memory).namespace_state(namespace)
