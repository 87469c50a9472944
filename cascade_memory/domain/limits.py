"""How much a namespace may hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from cascade_memory.domain.validation import check_k, check_seconds

MOST_REPORTED = 1_000  # episodes of a namespace that have nobody's word but their agent's
MOST_REPORTED_BYTES = 32 * 2**20  # of their text


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many cases, none of them last verified longer ago than so many seconds; None: no such limit."""

    max_cases: int | None = None
    ttl: float | None = None

    @classmethod
    def of(cls, max_cases: int | None, ttl: float | timedelta | None) -> Limits | None:
        """Check both; None when nothing is limited.

        >>> Limits.of(1000, timedelta(days=30))
        Limits(max_cases=1000, ttl=2592000.0)
        """
        if max_cases is None and ttl is None:
            return None
        return cls(
            None if max_cases is None else check_k(max_cases, "max_cases"), None if ttl is None else check_seconds(ttl, "ttl")
        )
