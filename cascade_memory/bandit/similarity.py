"""Policies that do not learn: plain cosine order, fixed weights, nothing shown, or any case with the same probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State


class SimilarityPolicy:
    """Always shows the k most similar cases.

    >>> slate = Slate(features=np.zeros((2, 0)), similarity=np.array([0.2, 0.9]), groups=np.array([0, 1]))
    >>> SimilarityPolicy().select(slate, k=1, abstain=True, seed=0).chosen
    array([1])
    """

    name = "similarity-1"
    version = 0
    rewards = 0

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:  # noqa: ARG002 - it never abstains
        """Choose the k most similar candidates."""
        chosen = np.argsort(-slate.similarity, kind="stable")[:k]
        return plain_choice(slate, chosen, score=slate.similarity)

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Nothing is learned."""

    def withdraw(self, key: int) -> None:
        """Nothing is learned."""

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Nothing is learned."""

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Nothing is learned."""

    def state_dict(self) -> dict[str, Floats]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Load nothing."""


class FrozenHead(SimilarityPolicy):
    """Orders by fixed weights of the features and learns nothing: the pretrained reranker, unchanged (the paper's NP-CBR).

    >>> slate = Slate(features=np.array([[1.0], [3.0]]), similarity=np.array([0.9, 0.2]), groups=np.array([0, 1]))
    >>> FrozenHead(np.array([1.0])).select(slate, k=1, abstain=True, seed=0).chosen
    array([1])
    """

    name = "frozen-head-1"

    def __init__(self, theta: Floats) -> None:
        self._theta = np.asarray(theta, np.float64)

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:  # noqa: ARG002 - it never abstains
        """Choose the k candidates with the highest ``<theta, f>``."""
        score = np.asarray(slate.features, np.float64) @ self._theta
        return plain_choice(slate, best_first(slate, score)[:k], score=score)


class ShowNothing(SimilarityPolicy):
    """The baseline without memory (zero-shot): recalls are logged as usual, but no case is ever shown.

    >>> slate = Slate(features=np.zeros((1, 0)), similarity=np.array([0.9]), groups=np.array([0]))
    >>> ShowNothing().select(slate, k=1, abstain=False, seed=0).abstained
    True
    """

    name = "zero-shot-1"

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Order the candidates by cosine, and abstain from showing them."""
        choice = super().select(slate, k, abstain=abstain, seed=seed)
        return dataclasses.replace(choice, abstained=True, propensity=np.zeros(len(slate)))


class UniformPolicy(SimilarityPolicy):
    """A control for experiments: shows k candidates drawn without replacement. Its propensities are exact.

    >>> slate = Slate(features=np.zeros((4, 0)), similarity=np.zeros(4), groups=np.arange(4))
    >>> float(UniformPolicy().select(slate, k=2, abstain=False, seed=0).propensity[0])
    0.5
    """

    name = "uniform-1"

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:  # noqa: ARG002 - it never abstains
        """Choose k candidates at random."""
        n = len(slate)
        chosen = np.random.default_rng(seed).permutation(n)[:k]
        choice = plain_choice(slate, chosen, score=np.zeros(n))
        return dataclasses.replace(choice, propensity=np.full(n, min(1.0, k / max(n, 1))))


def best_first(slate: Slate, score: Floats) -> NDArray[np.int64]:
    """Order candidates by score; of two with equal scores, the more similar one comes first."""
    return np.lexsort((-slate.similarity, -score))


def plain_choice(slate: Slate, chosen: NDArray[np.int64], score: Floats) -> Choice:
    """Make a choice without predictions: utility and baseline are unknown, uncertainty is zero."""
    n = len(slate)
    propensity = np.zeros(n)
    propensity[chosen] = 1.0
    return Choice(
        chosen=chosen,
        value=np.asarray(score, np.float64),
        uncertainty=np.zeros(n),
        score=np.asarray(score, np.float64),
        utility=np.full(n, np.nan),
        propensity=propensity,
        baseline=float("nan"),
        abstained=False,
        context=np.zeros(0),
        version=0,
    )
