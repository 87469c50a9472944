"""Step 6, retain: what succeeded becomes a case."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import NewCase
from cascade_memory.domain.trajectory import Solution, solution_text
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.ports.solution_matcher import SolutionMatcher


def is_worth_retaining(value: float, source: str, *, retain_at: float, retain_from: Collection[str]) -> bool:
    """Retain what was solved, in the eyes of somebody other than the agent itself.

    >>> is_worth_retaining(1.0, "agent", retain_at=1.0, retain_from=("host", "human"))
    False
    """
    return value >= retain_at and source in retain_from


def new_case(
    query: str,
    vector: NDArray[np.float32],
    solution: Solution,
    *,
    namespace: int,
    matcher: SolutionMatcher,
    source: str,
    episode_id: str | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
) -> NewCase:
    """Return a case ready to be stored; the same query with an equal solution gets the same ``pair_key``."""
    return NewCase(
        id=str(uuid.uuid4()),
        namespace=namespace,
        query=query,
        solution=solution,
        solution_key=_digest(matcher.key(solution)),
        pair_key=_digest(f"{query}\x00{type(solution).__name__}\x00{solution_text(solution)}"),
        vector=vector,
        metadata=metadata or {},
        source=source,
        episode_id=episode_id,
        created_at=time.time(),
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
