"""The records that are written to the ledger and read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.digests import Signed
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.trajectory import Solution

Vector = NDArray[np.float32]
# The name of a capability's table, and a row of it. The columns ``episode`` and ``namespace`` are added when it is stored.
Beside: TypeAlias = tuple[str, Mapping[str, str]]

# Why a reward above 0 stored no case: it is below retain_at, has no solution, or retain_from excludes its source. Or why a
# reward, whatever its value, teaches nothing: its actor has reported too many within an hour.
Unkept: TypeAlias = Literal["below", "solution", "source", "capped"]


class Column(IntEnum):
    """The columns of ``RecallRecord.numbers``. Existing ledgers have this order, so add new columns at the end."""

    SIMILARITY = 0
    VALUE = 1
    UNCERTAINTY = 2
    SCORE = 3
    UTILITY = 4
    PROPENSITY = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opinion:
    """What a shadow policy would have chosen from a slate, and what it needs to learn from the choice that was shown."""

    policy: str
    places: NDArray[np.float32]  # (n,) 1 for the case it would have shown first, 0 for a case it would not have shown
    propensity: NDArray[np.float32]  # (n,)
    features: NDArray[np.float32]  # (n, d), from the shadow's own encoder
    context: NDArray[np.float32]  # the shadow's context for the cases that the live policy chose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecallRecord:
    """One recall, with everything that is needed to learn from it later, even in another process or with another policy."""

    id: str
    episode_id: str | None  # None for a search, which belongs to no episode
    namespace: int
    query: str
    vector: Vector
    kind: str  # "recall", or "search": plain similarity, from which nothing is learned
    k: int
    at: float
    policy: str
    policy_version: int
    encoder: str
    candidates: NDArray[np.int64]  # (n,) case keys
    groups: NDArray[np.int64]  # (n,)
    features: NDArray[np.float32]  # (n, d)
    numbers: NDArray[np.float32]  # (n, 6): a row for each candidate, see ``Column``
    chosen: NDArray[np.int64]  # (k,) positions among the candidates
    shown: bool
    baseline: float
    context: NDArray[np.float32]
    arm: str = "live"
    holdout: float = 0.0  # the probability with which a new episode was held out at that time
    thread: str | None = None
    shadow: Opinion | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])  # of the episode
    opens_episode: bool = False  # the recall begins a new episode, whose id nobody else knows yet
    actor: str | None = None  # who asked; of a new episode
    channel: str | None = None
    beside: Sequence[Beside] = ()  # what capabilities store with the episode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewCase:
    """A case that is about to be stored."""

    id: str
    namespace: int
    query: str
    solution: Solution
    solution_key: str  # equal for solutions that agree
    pair_key: str  # equal for the same query with the same solution
    vector: Vector
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    source: str = "host"
    episode_id: str | None = None
    created_at: float = 0.0
    novelty: float = 1.0  # 0 if all neighbours have the same solution; 1 if none has, or if this was not checked
    actor: str | None = None  # who made it
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseRecords:
    """What is known of all cases of a namespace that may be shown, oldest first; every array has one entry per case."""

    keys: NDArray[np.int64]
    novelty: NDArray[np.float64]
    shown: NDArray[np.float64]
    succeeded: NDArray[np.float64]
    pinned: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unsettled:
    """What the memory must know about an episode to settle it."""

    key: int
    namespace: int
    query: str
    vector: Vector
    solution: Solution | None  # the solution that was rewarded before, or that the run ended with, if known
    groups: dict[int, NDArray[np.int64]]  # recall key -> solution ids of its candidates
    similarity: dict[int, NDArray[np.float32]]  # recall key -> their cosines
    agents_words: bool = False  # only the agent itself says that this solution is right
    watched: bool = False  # whether a capability has rows about it that a reward changes
    kinds: dict[int, tuple[str, str]] | None = None  # of the groups, see ``Cases.told_apart``; None if nobody asked for them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settlement:
    """An outcome that is about to be recorded: all of it is written in one transaction."""

    episode_id: str
    namespace: int
    value: float
    source: str
    at: float
    solution: Solution | None
    learns: bool
    case: NewCase | None
    agreement: Mapping[int, NDArray[np.float32]]  # recall key -> hindsight labels
    overwrite: bool
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    agents_words: bool = False  # the solution was reported by the agent itself, and nobody has confirmed it
    confirms: str | None = None  # the fingerprint that the episode must have
    waits: bool = False  # it waits to be confirmed; a namespace may hold only a limited number of such episodes
    unkept: Unkept | None = None
    action: NewAction | None = None  # the person's action that records it, which takes precedence over ``overwrite``
    actor: str | None = None  # who reports it
    channel: str | None = None
    ticket: Signed | None = None  # which it redeems
    cap: int | None = None  # the most outcomes of its actor from its source that teach within an hour
    found: Mapping[str, Any] = field(default_factory=dict[str, Any])  # by capabilities, for their observers
    opens: RecallRecord | None = None  # the episode that it opens, in the same transaction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doubt:
    """What the latest recall predicted, for an episode that waits for a verdict."""

    episode_id: str
    shown: bool
    predicted: float  # the success of what was done, with the case that was shown or without any; nan if nothing predicted it
    groups: NDArray[np.int64]  # of its candidates, the most similar first; equal for solutions that agree


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The result of recording an outcome."""

    episode_id: str
    changed: bool
    case_id: str | None = None
    capped: bool = False  # it teaches nothing, since its actor has reported too many within an hour
    within_a_minute: int = 0  # how many its actor has reported, if they are counted


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the ledger's log: what happened to which row."""

    seq: int
    namespace: int
    kind: str
    ref: int
    id: str | None = None  # the id of the case, if it was removed

    @property
    def adds_case(self) -> bool:
        """Whether a case was added; its key is ``ref``."""
        return self.kind == CASE_ADDED

    @property
    def takes_case(self) -> bool:
        """Whether a case was removed, for any reason."""
        return self.kind in GONE

    @property
    def makes_room(self) -> bool:
        """Whether a case was removed for its age or to make room; what was learned from it stays valid."""
        return self.kind in (EVICTED, EXPIRED)

    @property
    def forgets(self) -> bool:
        """Whether a user removed something: nothing that was computed from it may be kept."""
        return self.kind in (CASE_REMOVED, FORGOTTEN)

    @property
    def takes_outcomes_back(self) -> bool:
        """Whether outcomes that may have been learned from were removed, or a case that was a candidate for some of them."""
        return self.kind in TOOK_BACK

    @property
    def empties_namespace(self) -> bool:
        """Whether everything in a namespace was removed."""
        return self.kind == FORGOTTEN and not self.ref

    @property
    def settles(self) -> bool:
        """Whether an episode got an outcome; ``ref`` is the key of the outcome."""
        return self.kind == SETTLED

    @property
    def closes(self) -> bool:
        """Whether an episode was closed without an outcome; the key of the episode is ``ref``."""
        return self.kind == CLOSED

    @property
    def changes_case(self) -> bool:
        """Whether the metadata of a case changed, or the count of its verifications."""
        return self.kind == RETOLD

    @property
    def hides_case(self) -> bool:
        """Whether a case is no longer to be shown; its key is ``ref``."""
        return self.kind == HIDDEN

    @property
    def shows_case_again(self) -> bool:
        """Whether a hidden case may be shown again; its key is ``ref``."""
        return self.kind == UNHIDDEN

    @property
    def changes_encoder(self) -> bool:
        """Whether the statistics over all cases that may be shown must be computed again."""
        return self.forgets or self.kind in (HIDDEN, UNHIDDEN)

    @property
    def decides(self) -> bool:
        """Whether a capability has recorded a decision, or dropped rows of its own."""
        return self.kind == DECIDED

    @property
    def purges(self) -> bool:
        """Whether a purge happened: no copy may keep a byte of what was removed before it."""
        return self.kind == PURGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiring:
    """The result of one check for expired cases; the next check is due in ``look_again`` seconds."""

    expired: int
    deleted: int
    look_again: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The result of forgetting a source: counts of what was forgotten, and two lists of ids of cases.

    ``brought_back`` are cases that had been evicted to make room for cases of the source, and are back. ``made_after`` are
    cases that others made after they had seen cases of the source; these stay.
    """

    counts: Mapping[str, int]
    brought_back: tuple[str, ...] = ()
    made_after: tuple[str, ...] = ()
    as_prepared: bool = True  # if not, nothing was done: the source has gone on since the outcomes were prepared


CHANGES = (
    "case+",
    "case-",
    "evicted",
    "expired",
    "retold",
    "settled",
    "withdrawn",
    "closed",
    "forgotten",
    "purged",
    "hidden",
    "unhidden",
    "decided",
)
CASE_ADDED, CASE_REMOVED, EVICTED, EXPIRED, RETOLD, SETTLED = CHANGES[:6]
WITHDRAWN, CLOSED, FORGOTTEN, PURGED, HIDDEN, UNHIDDEN, DECIDED = CHANGES[6:]
TOOK_BACK = (CASE_REMOVED, WITHDRAWN, FORGOTTEN)
GONE = (CASE_REMOVED, EVICTED, EXPIRED)  # a case was removed, for any reason


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRecall:
    """One recall as it is stored; the arrays are those of ``RecallRecord``."""

    at: float
    query: str
    k: int
    policy: str
    version: int
    shown: bool
    baseline: float
    forgot: bool
    candidates: NDArray[np.int64]
    chosen: NDArray[np.int64]
    numbers: NDArray[np.float32]
    features: NDArray[np.float32]
