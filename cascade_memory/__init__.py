"""A case memory for agents that learns from outcomes which past cases to reuse.

from cascade_memory import CascadeMemory
memory = CascadeMemory("./memory")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.assembly.restore import restore
    from cascade_memory.domain.case import Case, with_tool_calls
    from cascade_memory.domain.episode import Episode
    from cascade_memory.domain.failure_warning import Advice, FailureWarning, WarningOptions
    from cascade_memory.domain.recall import Recall, RecalledCase
    from cascade_memory.domain.tickets import Tickets
    from cascade_memory.domain.trajectory import Step, Trajectory
    from cascade_memory.domain.validation import clean_text
    from cascade_memory.learning.ranker import Ranker
    from cascade_memory.memory.options import Ranking, Retention, Trust

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "CascadeMemory",
    "Case",
    "Episode",
    "FailureWarning",
    "Ranker",
    "Ranking",
    "Recall",
    "RecalledCase",
    "Retention",
    "Step",
    "Tickets",
    "Trajectory",
    "Trust",
    "WarningOptions",
    "clean_text",
    "restore",
    "with_tool_calls",
]

# Modules are imported at first use (PEP 562), so that importing the package alone is fast.
_HOMES = {
    "Advice": "domain.failure_warning",
    "CascadeMemory": "assembly.cascade",
    "Case": "domain.case",
    "Episode": "domain.episode",
    "FailureWarning": "domain.failure_warning",
    "Ranker": "learning.ranker",
    "Ranking": "memory.options",
    "Recall": "domain.recall",
    "RecalledCase": "domain.recall",
    "Retention": "memory.options",
    "Step": "domain.trajectory",
    "Tickets": "domain.tickets",
    "Trajectory": "domain.trajectory",
    "Trust": "memory.options",
    "WarningOptions": "domain.failure_warning",
    "clean_text": "domain.validation",
    "restore": "assembly.restore",
    "with_tool_calls": "domain.case",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
