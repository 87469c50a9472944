"""The arguments of a check of an action, as they are passed to the engine: already validated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cascade_memory.domain.trajectory import Step

# Returns the steps of a run so far; None if they are not known.
StepsSoFar: TypeAlias = Callable[[], Sequence[Step] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The question whether an action that is about to be done is a known mistake."""

    episode_id: str
    namespace: str
    step: Step  # without an observation
    done: StepsSoFar | None = None
    call_id: str | None = None
    asker: str | None = None  # who uses the memory
    min_trust: int = 0  # the level that a failure must have
    deadline: float | None = None  # in seconds
    held: bool = True  # the action waits for the answer; over MCP it does not: the agent asks, and then acts elsewhere
