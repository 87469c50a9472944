"""A run that failed at a step that is blamed, as it stands in the ledger of an open memory."""

from __future__ import annotations

import time
from typing import Any

from inside import engine_of
from warning_rows import rows_in

from cascade_memory import CascadeMemory
from cascade_memory.capabilities.warnings.records import Blame, Check, WarningDecision
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.records import Settlement

WARNING = "6d697374616b65"


def settlement(episode_id: str, value: float, namespace: int = 1, **options: Any) -> Settlement:
    """Make an outcome that stores no case; ``blame`` and ``repeats`` are what warnings have found out about it."""
    found = {name: options.pop(name) for name in ("blame", "repeats") if name in options}
    said: dict[str, Any] = {"source": "env", "at": time.time(), "solution": None, "case": None, "learns": True}
    said |= {"agreement": {}, "overwrite": False, "found": found, **options}
    return Settlement(episode_id=episode_id, namespace=namespace, value=value, **said)


def blame(**options: Any) -> Blame:
    """Make a step that is blamed."""
    said: dict[str, Any] = {"why": "failed", "tool": "sql", "action": "SELECT agee FROM staff", "words": ("agee",)}
    said |= {"happened": "no such column: agee", "group": WARNING, **options}
    return Blame(**said)


def fail_once(memory: CascadeMemory, task: str = "asks for a column", **options: Any) -> str:
    """Let a run fail; return its episode. ``options`` are of its recall."""
    episode_id = memory.recall(task, **options).episode_id
    engine_of(memory).parts.ledger.settle(settlement(episode_id, 0.0, blame=blame()))
    return episode_id


def check_once(memory: CascadeMemory, task: str = "asks for another column") -> str:
    """Let a run be warned and not repeat the mistake, and a person decide about the warning; return its episode."""
    ledger = engine_of(memory).parts.ledger
    episode_id = memory.recall(task).episode_id
    rows_in(ledger).note_check(
        Check(episode_id=episode_id, warning=WARNING, warned=True, propensity=0.5, at=time.time(), call="call-1")
    )
    ledger.settle(settlement(episode_id, 1.0, repeats={WARNING: False}))
    for kind, decision in (("retire", WarningDecision()), ("advise", WarningDecision(advice="the column is named age"))):
        rows_in(ledger).decide(1, WARNING, decision, NewAction(kind=kind, actor="ann"))
    return episode_id
