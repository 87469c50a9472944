"""A reward for runs in which every tool call worked."""

from __future__ import annotations

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import Trajectory


def no_tool_failed(episode: Episode) -> float | None:
    """Reward a trajectory in which no tool failed; None if no tool was called.

    >>> from cascade_memory.domain.trajectory import Step
    >>> walk = Trajectory([Step(tool="search", observation="no such index", failed=True)])
    >>> no_tool_failed(Episode(id="e", namespace="n", query="q", status="open", solution=walk))
    0.0
    """
    if episode.status == "error" or not isinstance(episode.solution, Trajectory):
        return None
    calls = [step for step in episode.solution.steps if step.tool is not None]
    return float(not any(step.failed for step in calls)) if calls else None
