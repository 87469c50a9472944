"""Which candidate to reuse: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.floating[Any]]"
State: TypeAlias = "Mapping[str, NDArray[np.floating[Any]]]"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slate:
    """The n candidates of one recall as a policy sees them.

    ``features`` (n, d) come from the pair encoder, ``similarity`` (n,) is the cosine, candidates with equal ``groups`` (n,)
    store solutions that agree. ``query`` (dimension,) is the unit vector of the task, None where it is not known any more.
    """

    features: Floats
    similarity: Floats
    groups: NDArray[np.int64]
    query: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.similarity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """What a policy made of a slate; every array has one entry per candidate, except ``chosen`` and ``context``.

    ``chosen`` holds the k best candidates, best first, also when the policy ``abstained`` and none is shown. ``value`` is the
    exploitation term, ``uncertainty`` the posterior's width, ``score`` what the order is made of, ``utility`` the predicted
    success when this candidate is shown and ``baseline`` the predicted success without any (nan where unknown).
    ``context`` is whatever the policy wants to be given back with the reward; ``contributions`` (n, d), where there are any,
    say what each feature adds to the value, and ``standing`` (n, 3) how often its solution was shown for like tasks, how often
    that went well, and what this adds to the value.
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feedback:
    """The outcome of one recall, with everything that was logged when it was made.

    ``agreement`` (n,) says how far each candidate's solution agrees with the verified one, nan where that is unknown; it is
    None where nothing was verified. ``shown`` is False when the policy abstained. ``weight`` is this recall's share of the
    episode's credit.
    """

    key: int
    slate: Slate
    chosen: NDArray[np.int64]
    context: Floats
    shown: bool
    reward: float
    agreement: Floats | None
    weight: float = 1.0


class Policy(Protocol):
    """Chooses among candidates and learns from outcomes. One per namespace."""

    @property
    def name(self) -> str:
        """Name and version of the algorithm; a snapshot of another one is not loaded."""
        ...

    @property
    def version(self) -> int:
        """Grows whenever the policy may choose differently from before."""
        ...

    @property
    def rewards(self) -> int:
        """Number of rewards that stand behind the present state."""
        ...

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Choose the k best of a slate. Called from many threads at once; must not wait for ``update``."""
        ...

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Note a choice whose reward is still to come."""
        ...

    def withdraw(self, key: int) -> None:
        """Forget an expected reward that will never come."""
        ...

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes. Called by one thread at a time."""
        ...

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Start afresh from these outcomes, oldest first."""
        ...

    def state_dict(self) -> dict[str, Floats]:
        """Return the learned state as named arrays."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Take over a state that ``state_dict`` returned."""
        ...


@runtime_checkable
class MayAbstain(Protocol):
    """What a policy offers besides, if it draws whether to show anything, or keeps a context about what it chose."""

    def chance_of_showing(self, choice: Choice, *, seed: int) -> float:
        """Return how likely the policy was to show this choice rather than nothing."""
        ...

    def context_of(self, slate: Slate, choice: Choice, chosen: NDArray[np.int64]) -> Floats:
        """Return the context of other candidates of the slate than those it chose."""
        ...
