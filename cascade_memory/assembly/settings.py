"""The settings of an engine, and the checks for wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from cascade_memory.domain.failure_warning import WarningOptions
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.trust import Vigilance
from cascade_memory.domain.validation import check_word
from cascade_memory.engine.door import Redact, check_redact
from cascade_memory.engine.engine import Learning
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.encoders import Embedder, SolutionMatcher
from cascade_memory.stores.chroma_server import parsed

Matcher: TypeAlias = "SolutionMatcher | Callable[[Any, Any], float | bool | None] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an engine; all handles on one place must have the same."""

    embedder: str | Embedder
    ranker: str | Ranker
    matcher: Any
    learn: Learning
    candidates: int
    shadow: str | Ranker | None = None
    chroma: str | None = None
    policy_scope: str = "namespace"
    limits: Limits | None = None
    credit: Any = "matched"
    ranker_options: Mapping[str, Any] | None = None
    redact: Redact = True
    vigilance: Vigilance | None = None
    warnings: WarningOptions | None = field(default_factory=WarningOptions)


def check(settings: Settings) -> None:
    """Refuse settings that are invalid whatever the place is."""
    check_word(settings.learn, ("inline", "background", "off"), "learn")
    check_redact(settings.redact)
    if settings.chroma is not None:
        parsed(settings.chroma)


def same(first: Settings, settings: Settings) -> bool:
    """Say whether an engine with the first settings also serves a handle that asks for the second ones."""
    try:
        check_same(first, settings, "")
    except InvalidInput:
        return False
    return True


def check_same(first: Settings, settings: Settings, place: str) -> None:
    """Refuse settings that differ from those with which the place is open.

    A setting that is "auto" accepts every value of the open engine. So does a ``limits``, ``shadow`` or ``vigilance`` that is
    None, a ``ranker_options`` that is None if the ranker is "auto", and a ``warnings`` that has its default.
    """
    for name in (one.name for one in fields(Settings)):
        before, now = getattr(first, name), getattr(settings, name)
        alike = getattr(now, "identity", now) == getattr(before, "identity", before)
        optional = ("limits", "shadow", "vigilance", *(("ranker_options",) if settings.ranker == "auto" else ()))
        asks_nothing = (name in optional and now is None) or (name == "warnings" and now == WarningOptions())
        if not alike and now != "auto" and not asks_nothing:
            named = f"{name}={before!r}"
            if name == "limits":  # which are two options
                named = f"max_cases={getattr(before, 'max_cases', None)} and ttl={getattr(before, 'ttl', None)}"
            raise InvalidInput(f"{place} is open in this process with {named}; open it with the same, or close it there first")
