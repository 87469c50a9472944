"""How much a namespace may hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from cascade_memory.domain.validation import check_k, check_seconds

MOST_REPORTED = 1_000  # episodes of a namespace whose only reward comes from the agent itself
MOST_REPORTED_BYTES = 32 * 2**20  # limit for the text of those episodes


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest number of cases, and for how many seconds a case stays after its last verification; None: no limit."""

    max_cases: int | None = None
    ttl: float | None = None

    @classmethod
    def of(cls, max_cases: int | None, ttl: float | timedelta | None) -> Limits | None:
        """Check both limits; return None if there is neither.

        >>> Limits.of(1000, timedelta(days=30))
        Limits(max_cases=1000, ttl=2592000.0)
        """
        if max_cases is None and ttl is None:
            return None
        return cls(
            None if max_cases is None else check_k(max_cases, "max_cases"), None if ttl is None else check_seconds(ttl, "ttl")
        )
