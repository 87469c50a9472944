"""What the adapters of all frameworks share: the active episode, the work at the end of a run, and failing open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

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

_HOMES = {
    "ActiveEpisode": "around",
    "Adapter": "adapter",
    "RunEndWorker": "ending",
    "active_episode": "around",
    "engine_for": "adapter",
    "fail_open": "ending",
    "join": "around",
    "status_of": "ending",
    "within": "around",
}


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
