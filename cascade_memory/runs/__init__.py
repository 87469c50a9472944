"""What the adapters of all frameworks share: the active episode, the work at the end of a run, and failing open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.runs.adapter import Adapter, engine_for
    from cascade_memory.runs.around import ActiveEpisode, active_episode, join, within
    from cascade_memory.runs.ending import RunEndWorker, fail_open, status_of

__all__ = [
    "ActiveEpisode",
    "Adapter",
    "RunEndWorker",
    "active_episode",
    "engine_for",
    "fail_open",
    "join",
    "status_of",
    "within",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "adapter": "Adapter engine_for",
        "around": "ActiveEpisode active_episode join within",
        "ending": "RunEndWorker fail_open status_of",
    },
)
