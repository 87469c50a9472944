"""Hides the memory's own failures from the agent."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from cascade_memory.domain.interruptible import interruptible

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


@interruptible
def fail_open(memory: Memory, step: str) -> Generator[None, None, None]:
    """Count an exception under the name of a step instead of raising it; see ``memory.health()``."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is: a failing memory must not break the agent
        memory.note_failure(step, error)
