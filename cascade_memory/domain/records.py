"""What goes into the ledger and what comes back out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.validation import MetadataValue

Vector = NDArray[np.float32]

# Why a reward above 0 made no case: it lies below retain_at, came without a solution, or from whom retain_from leaves out.
Unkept: TypeAlias = Literal["below", "solution", "source"]


class Column(IntEnum):
    """The columns of ``RecallRecord.numbers``. Ledgers are written in this order: a new column goes to the end."""

    SIMILARITY = 0
    VALUE = 1
    UNCERTAINTY = 2
    SCORE = 3
    UTILITY = 4
    PROPENSITY = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opinion:
    """What a shadow policy would have made of a slate, and what it needs to learn from what was shown instead."""

    policy: str
    places: NDArray[np.float32]  # (n,) 1 for what it would have shown first, 0 for what it would not have shown
    propensity: NDArray[np.float32]  # (n,)
    features: NDArray[np.float32]  # (n, d) as its own encoder sees the candidates
    context: NDArray[np.float32]  # about the cases that the live policy chose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecallRecord:
    """One recall, complete enough to learn from it later, in another process, with another policy."""

    id: str
    episode_id: str | None  # None: a search, which belongs to no episode
    namespace: int
    query: str
    vector: Vector
    kind: str  # "recall", or "search": plain similarity, never learned from
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
    holdout: float = 0.0  # the probability with which a new episode was to be held out
    thread: str | None = None
    shadow: Opinion | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])  # of the episode
    opens_episode: bool = False  # with an id that nobody else knows yet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewCase:
    """A case about to be stored."""

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
    novelty: float = 1.0  # how little the neighbours knew of it; 1 where nobody looked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseRecords:
    """What is known of all cases of a namespace, oldest first; every array has one entry per case."""

    keys: NDArray[np.int64]
    novelty: NDArray[np.float64]
    shown: NDArray[np.float64]
    succeeded: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unsettled:
    """What must be known of an episode to settle it."""

    key: int
    namespace: int
    query: str
    vector: Vector
    solution: Solution | None  # what was rewarded before, or what the run ended with, if that was noted
    groups: dict[int, NDArray[np.int64]]  # recall key -> solution ids of its candidates
    similarity: dict[int, NDArray[np.float32]]  # recall key -> their cosines
    agents_words: bool = False  # nobody but the agent says that this solved it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settlement:
    """An outcome about to be recorded: everything that must become true at once, or not at all."""

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
    agents_words: bool = False  # the solution is what the agent reported, and nobody has confirmed it
    confirms: str | None = None  # the fingerprint that the episode must have
    waits: bool = False  # for somebody else's word: counts against what a namespace may hold of such
    unkept: Unkept | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What recording an outcome did."""

    episode_id: str
    changed: bool
    case_id: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the ledger's log: what happened to which row."""

    seq: int
    namespace: int
    kind: str
    ref: int
    id: str | None = None  # of a case that is gone

    @property
    def adds_case(self) -> bool:
        """True where a case came, whose key is ``ref``."""
        return self.kind == CASE_ADDED

    @property
    def takes_case(self) -> bool:
        """True where a case went, for whichever reason."""
        return self.kind in GONE

    @property
    def makes_room(self) -> bool:
        """True where a case went for its age, or to make room for others: what it taught was true."""
        return self.kind in (EVICTED, EXPIRED)

    @property
    def forgets(self) -> bool:
        """True where somebody had something forgotten: it must not live on in anything that was made of it."""
        return self.kind in (CASE_REMOVED, FORGOTTEN)

    @property
    def takes_outcomes_back(self) -> bool:
        """True where outcomes that were learned from are not there any more."""
        return self.kind in (WITHDRAWN, FORGOTTEN)

    @property
    def forgets_outcomes(self) -> bool:
        """True where outcomes are not there any more since somebody had them forgotten."""
        return self.kind == FORGOTTEN

    @property
    def empties_namespace(self) -> bool:
        """True where everything of a namespace went."""
        return self.kind == FORGOTTEN and not self.ref

    @property
    def settles(self) -> bool:
        """True where an episode got its outcome, whose key is ``ref``."""
        return self.kind == SETTLED

    @property
    def closes(self) -> bool:
        """True where an episode, whose key is ``ref``, was closed without an outcome."""
        return self.kind == CLOSED

    @property
    def retells_case(self) -> bool:
        """True where the metadata of a case changed, or how often it was verified."""
        return self.kind == RETOLD

    @property
    def purges(self) -> bool:
        """True where no copy may keep a byte of what went before."""
        return self.kind == PURGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiring:
    """What one look at the age of cases has done, and in how many seconds there is something to do again."""

    expired: int
    deleted: int
    look_again: float


CASE_ADDED, CASE_REMOVED, EVICTED, EXPIRED, RETOLD, SETTLED, WITHDRAWN, CLOSED, FORGOTTEN, PURGED = CHANGES = (
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
)
GONE = (CASE_REMOVED, EVICTED, EXPIRED)  # a case is not there any more, for whichever reason
