"""The rankers that ship, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.light import COSINE_WEIGHT, LightPolicy
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.shared_weights import SharedWeights
from cascade_memory.bandit.similarity import SimilarityPolicy
from cascade_memory.bandit.uniform import UniformPolicy
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.parts import Lookup, Ranker


def _cosine_only(dimension: int, lookup: Lookup) -> CosineEncoder:
    del dimension, lookup
    return CosineEncoder()


def light(*, hindsight: bool = True, shared: bool = False, **options: Any) -> Ranker:
    """Return the default: the light encoder, a ranking head with hindsight, and abstaining.

    With ``shared``, the heads of all namespaces of a folder are shrunk to one that learns from all of them.
    """
    weights = SharedWeights(lambda: LightPolicy(len(FEATURES), hindsight=hindsight, **options)) if shared else None
    lean_on = None if weights is None else weights.mean
    return Ranker(
        name="light",
        encoder=LightEncoder,
        policy=lambda: LightPolicy(len(FEATURES), hindsight=hindsight, lean_on=lean_on, **options),
        features=FEATURES,
        shared=weights,
    )


def neural_linlogucb(**options: Any) -> Ranker:
    """Return the paper's bandit on the light features; it starts in the order of the cosine."""
    theta: NDArray[np.float64] = np.zeros(len(FEATURES))
    theta[0] = COSINE_WEIGHT
    return Ranker(
        name="neural-linlogucb",
        encoder=LightEncoder,
        policy=lambda: NeuralLinLogUCB(theta, **options),
        features=FEATURES,
    )


def similarity() -> Ranker:
    """Return the off-switch: plain cosine order, nothing learned."""
    return Ranker(name="similarity", encoder=_cosine_only, policy=SimilarityPolicy)


def uniform() -> Ranker:
    """Return a control: candidates drawn at random."""
    return Ranker(name="random", encoder=_cosine_only, policy=UniformPolicy)


_BY_NAME = {
    "auto": light,
    "light": light,
    "neural-linlogucb": neural_linlogucb,
    "similarity": similarity,
    "random": uniform,
}


def resolve_ranker(ranker: str | Ranker, *, hindsight: bool, shared: bool = False) -> Ranker:
    """Return the ranker that the user asked for.

    >>> resolve_ranker("similarity", hindsight=True).name
    'similarity'
    """
    if isinstance(ranker, Ranker):
        if shared and ranker.shared is None:
            raise InvalidInput(f'policy_scope="shared" needs a ranker with shared weights, and {ranker.name!r} has none')
        return ranker
    if not isinstance(ranker, str) or ranker not in _BY_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"ranker must be one of {', '.join(sorted(_BY_NAME))}, or a Ranker, not {ranker!r}")
    if ranker in ("auto", "light"):
        return light(hindsight=hindsight, shared=shared)
    if shared:
        raise InvalidInput(f'policy_scope="shared" needs the ranker "light": {ranker!r} has no weights to share')
    return _BY_NAME[ranker]()
