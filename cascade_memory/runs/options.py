"""The options that every framework adapter passes on to its memory, named so that editors and type checkers know them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, Literal, TypedDict

from cascade_memory.bandit.credit import Credit, CreditName
from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.case_text import CaseText
from cascade_memory.domain.tickets import Tickets
from cascade_memory.domain.vigilance import Vigilance
from cascade_memory.domain.warning_options import WarningOptions
from cascade_memory.learning.ranker import Ranker
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
    abstain: bool
    holdout: float
    explore: float
    shadow: str | Ranker | None
    matcher: Any
    template: Template | None
    retain_at: float
    retain_from: Collection[str]
    candidates: int
    max_cases: int | None
    ttl: float | timedelta | None
    chroma: str | None
    policy_scope: Literal["namespace", "shared"]
    credit: CreditName | Credit
    ranker_options: Mapping[str, Any] | None
    case_text: CaseText | None
    deadline: float | timedelta | None
    actor: str | None
    min_trust: str | None
    redact: bool | Callable[[str], str]
    vigilance: Vigilance | None
    tickets: bool | Tickets
    reward_caps: Mapping[str, int | None] | None
    warnings: bool | WarningOptions
