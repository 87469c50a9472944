"""A control for experiments: it shows each candidate with the same probability."""

from __future__ import annotations

import dataclasses

import numpy as np

from cascade_memory.bandit.similarity import SimilarityPolicy, plain_choice
from cascade_memory.ports.policy import Choice, Slate


class UniformPolicy(SimilarityPolicy):
    """Shows k candidates drawn without replacement. It learns nothing, and its propensities are exact.

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
