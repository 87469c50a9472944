"""What people see of a memory: pages of cases and episodes, recorded decisions, and the history of outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.domain.trajectory import Solution
from cascade_memory.visible import shown_visibly

State: TypeAlias = Literal["pinned", "hidden"]
Sort: TypeAlias = Literal["newest", "oldest", "shown", "successes", "use"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list; pass ``after`` to get the next page. On the last page, ``after`` is None."""

    items: tuple[T, ...]
    after: str | None


@dataclass(frozen=True, slots=True, eq=False)
class CaseOrder:
    """All cases of a namespace, sorted by their use or age (``sort``), as they were at one moment."""

    sort: Sort
    values: NDArray[np.float64]
    keys: NDArray[np.int64]

    @staticmethod
    def of(use: NDArray[np.float64], sort: Sort) -> CaseOrder:
        """Put cases, given as (key, novelty, shown, succeeded), in order; of equal ones the newest is first."""
        keys, novelty, shown, succeeded = use.T
        values = {
            "newest": keys,
            "oldest": -keys,
            "shown": shown,
            "successes": succeeded,
            "use": novelty * (succeeded + 0.5) / (shown + 1.0),
        }[sort]
        order = np.lexsort((-keys, -values))
        return CaseOrder(sort, values[order], keys[order].astype(np.int64))

    def following(self, after: tuple[float, int] | None, limit: int) -> list[tuple[float, int]]:
        """Return (value, key) of the cases that follow the pair ``after``, whose own case may be gone."""
        start = 0
        if after is not None:
            start = int(((self.values > after[0]) | ((self.values == after[0]) & (self.keys >= after[1]))).sum())
        here = slice(start, start + limit)
        return list(zip(self.values[here].tolist(), self.keys[here].tolist(), strict=True))


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """An outcome as it was reported; ``withdrawn_at`` is set once another one has replaced it.

    ``learns`` is False if the agent itself reported it. ``case_id`` is the case that was stored because of it, if any.
    """

    episode_id: str
    value: float
    source: str
    at: float
    solution: Solution | None
    learns: bool
    withdrawn_at: float | None
    case_id: str | None
    actor: str | None = None  # who reported it, as the host said
    channel: str | None = None


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCandidate:
    """A case that a recall considered, with the numbers that were computed then.

    ``id`` and ``query`` are None if the case is gone. ``signals`` are the standardised signals, in the order of
    ``RecordedRecall.signals``; ``contributions`` are what they add to the value with the weights of *today*.
    ``propensity`` is the probability with which the ranker chose it.
    """

    id: str | None
    query: str | None
    similarity: float
    value: float
    uncertainty: float
    score: float
    utility: float
    propensity: float
    chosen: bool
    signals: tuple[float, ...] = ()
    contributions: tuple[float, ...] = ()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRecall:
    """One recall of an episode as the ledger keeps it.

    Later, when nothing is learned from it any more, only the candidates that were shown are kept: then ``whole`` is False.
    ``forgot`` says that a candidate was forgotten since. ``baseline`` is the predicted success without a case (nan: unknown).
    """

    at: float
    query: str
    k: int
    policy: str
    version: int
    shown: bool
    baseline: float
    forgot: bool
    whole: bool
    signals: tuple[str, ...]
    candidates: Sequence[RecordedCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A case near another one, with the cosine of the two."""

    case: Case
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEpisode:
    """The reward of an episode, whether a case was shown, and what was predicted for it (nan: nothing)."""

    reward: float
    showed: bool
    predicted: float
