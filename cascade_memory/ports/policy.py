"""Policies choose among the candidates and learn from outcomes: arrays in, arrays out.

``Judged`` is an episode with a known outcome, and how its first choice was made: the input of all measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.floating[Any]]"
State: TypeAlias = "Mapping[str, NDArray[np.floating[Any]]]"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slate:
    """The n candidates of one recall, as a policy sees them.

    ``features`` (n, d) come from the pair encoder, ``similarity`` (n,) is the cosine. Candidates with equal ``groups`` (n,)
    have solutions that agree. ``query`` (dimension,) is the unit vector of the task, None if it is no longer stored. ``floors``
    (n,) are the cosines that unrelated cases reach as well, None if they are unknown.
    """

    features: Floats
    similarity: Floats
    groups: NDArray[np.int64]
    query: NDArray[np.float32] | None = None
    floors: Floats | None = None

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.similarity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """A policy's choice from a slate; every array has one entry per candidate, except ``chosen`` and ``context``.

    ``chosen`` holds the k best candidates, best first, even if the policy ``abstained`` and none is shown. ``value`` is the
    exploitation term, ``uncertainty`` the posterior's width, ``score`` what the candidates are sorted by. ``utility`` is the
    predicted success if this candidate is shown, ``baseline`` the predicted success without any case (nan if unknown).
    ``context`` is data that the policy gets back with the reward. ``contributions`` (n, d), if there are any, say what each
    feature adds to the value. ``standing`` (n, 3 or more) holds the record of each solution: how often it was shown for similar
    tasks, how often that went well, and what this adds to the value; further columns are the policy's own. ``ease`` is how much
    more likely success is than usual on tasks like this one, whatever is shown. ``trust`` is how far rewards without hindsight
    may change the weights of the features: from 0 to 1, or nan if this is not learned. ``paused`` is the number of further
    outcomes for which no case is shown, because showing cases has cost successes; 0 if cases may be shown.
    """

    chosen: NDArray[np.int64]
    value: Floats
    uncertainty: Floats
    score: Floats
    utility: Floats
    propensity: Floats
    baseline: float
    abstained: bool
    context: Floats
    version: int
    contributions: Floats | None = None
    standing: Floats | None = None
    ease: float = 0.0
    trust: float = float("nan")
    paused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feedback:
    """The outcome of one recall, with everything that was logged when the recall was made.

    ``agreement`` (n,) says how far each candidate's solution agrees with the verified one, nan if that is unknown; it is None
    if no solution was verified. ``shown`` is False if the policy abstained. ``trust`` says how far the source of the reward is
    believed, and ``weight`` is this recall's share of the episode's credit, times that trust. ``encoder`` is the identity under
    which the features were logged, "" if that is unknown. ``descent`` names (the solution that this success was retained with,
    the shown solution that it was made from), by numbers like ``slate.groups``; it is None if no case was retained, or if its
    solution is not like a shown one.
    """

    key: int
    slate: Slate
    chosen: NDArray[np.int64]
    context: Floats
    shown: bool
    reward: float
    agreement: Floats | None
    weight: float = 1.0
    trust: float = 1.0
    encoder: str = ""
    descent: tuple[int, int] | None = None


class Policy(Protocol):
    """Chooses among candidates and learns from outcomes. One per namespace."""

    @property
    def name(self) -> str:
        """Name and version of the algorithm; snapshots of another name are not loaded."""
        ...

    @property
    def version(self) -> int:
        """A number that grows whenever the policy may choose differently than before."""
        ...

    @property
    def rewards(self) -> int:
        """The number of rewards that the present state was learned from."""
        ...

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Choose the k best of a slate. Called from many threads at once; must not wait for ``update``."""
        ...

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Record a choice whose reward is still to come."""
        ...

    def withdraw(self, key: int) -> None:
        """Discard an expected reward that will never come."""
        ...

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes. Called by one thread at a time."""
        ...

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Discard everything learned, and learn from these outcomes, oldest first."""
        ...

    def state_dict(self) -> dict[str, Floats]:
        """Return the learned state as named arrays."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Load a state that ``state_dict`` returned."""
        ...


@runtime_checkable
class MayAbstain(Protocol):
    """Optional methods of a policy that decides at random whether to show anything, or stores a context with its choice."""

    def chance_of_showing(self, choice: Choice, *, seed: int) -> float:
        """Return the probability with which the policy showed this choice rather than nothing."""
        ...

    def context_of(self, slate: Slate, choice: Choice, chosen: NDArray[np.int64]) -> Floats:
        """Return the ``context`` (see ``Choice``) to be stored when ``chosen`` is shown instead of the policy's own choice."""
        ...


@dataclass(frozen=True, slots=True)
class Taught:
    """What a policy has learned, for people.

    ``by`` is what teaches it: "hindsight", or "rewards" alone where solutions do not recur. ``start`` and ``weights`` are the
    weights of the features before any reward, and now. ``trust`` is how far rewards may change them (0 to 1), nan if it does
    not apply. ``families`` are the numbers of cases in each family of more than one, the largest first. ``shows_unrelated`` is
    True once outcomes have shown that even cases help that are no more similar to the task than unrelated texts are.
    ``paused`` is like that of a ``Choice``.
    """

    by: Literal["hindsight", "rewards"]
    rewards: int
    start: Floats
    weights: Floats
    trust: float
    families: tuple[int, ...]
    shows_unrelated: bool = False
    paused: int = 0


@runtime_checkable
class SaysWhatItLearned(Protocol):
    """The optional method of a policy that can say what it has learned."""

    def taught(self) -> Taught:
        """Describe the present state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A settled episode.

    ``lesson`` is its first recall, together with the episode's reward. ``utility``, ``propensity``, and of the shadow
    ``shadow_places`` and ``shadow_propensity``, have one entry per candidate of this recall. ``whole`` is False if the ledger
    has dropped the candidates that were not shown, ``forgot`` is True if a candidate was forgotten since. ``showed`` is True if
    any recall of the episode showed a case. ``holdout`` is the probability with which the episode could have been held out.
    """

    lesson: Feedback
    arm: str
    holdout: float
    recalls: int
    showed: bool
    k: int
    forgot: bool
    encoder: str
    whole: bool
    utility: Floats
    propensity: Floats
    baseline: float
    shadow: str | None
    shadow_places: Floats
    shadow_propensity: Floats
