"""The options that every framework adapter passes on to its memory, named so that editors and type checkers know them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Literal, TypedDict

from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.warning_options import WarningOptions
from cascade_memory.learning.ranker import Ranker
from cascade_memory.memory.options import Ranking, Retention, Trust
from cascade_memory.memory.verdict import RewardFn


class SharedOptions(TypedDict, total=False):
    """The options of ``cascade_memory.CascadeMemory``, which explains them.

    ``path`` and ``k`` are left out, since each adapter has them itself, and so is ``embedder``, which may also be an embedder
    of the adapter's framework.
    """

    ranker: str | Ranker
    namespace: str
    reward_fn: RewardFn | None
    learn: Literal["inline", "background", "off"]
    template: Template | None
    chroma: str | None
    deadline: float | timedelta | None
    redact: bool | Callable[[str], str]
    warnings: bool | WarningOptions
    ranking: Ranking
    retention: Retention
    trust: Trust
