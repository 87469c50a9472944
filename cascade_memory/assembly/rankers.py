"""The rankers that ship, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.credit import CREDITS, Credit
from cascade_memory.bandit.light import COSINE_WEIGHT, LightPolicy
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.shared_weights import SharedWeights
from cascade_memory.bandit.similarity import FrozenHead, ShowNothing, SimilarityPolicy
from cascade_memory.bandit.uniform import UniformPolicy
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.encoders.recency import RecencyEncoder
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.parts import Lookup, Ranker
from cascade_memory.ports.policy import Policy


def _cosine_only(dimension: int, lookup: Lookup) -> CosineEncoder:
    del dimension, lookup
    return CosineEncoder()


def _recency(dimension: int, lookup: Lookup) -> RecencyEncoder:
    del dimension, lookup
    return RecencyEncoder()


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


def _on_light_features(name: str, policy: Callable[[], Policy]) -> Ranker:
    return Ranker(name=name, encoder=LightEncoder, policy=policy, features=FEATURES)


def _order_of_the_cosine() -> NDArray[np.float64]:
    theta: NDArray[np.float64] = np.zeros(len(FEATURES))
    theta[0] = COSINE_WEIGHT
    return theta


def neural_linlogucb(**options: Any) -> Ranker:
    """Return the paper's bandit on the light features; it starts in the order of the cosine. ``alpha=0`` is greedy."""
    return _on_light_features("neural-linlogucb", lambda: NeuralLinLogUCB(_order_of_the_cosine(), **options))


def linlogucb(**options: Any) -> Ranker:
    """Return LinLogUCB on the light features."""
    return _on_light_features("linlogucb", lambda: LinLogUCB(len(FEATURES), **options))


def neural_logucb(**options: Any) -> Ranker:
    """Return NeuralLogUCB on the light features."""
    return _on_light_features("neural-logucb", lambda: NeuralLogUCB(len(FEATURES), **options))


def neural_linucb(**options: Any) -> Ranker:
    """Return Neural-LinUCB on the light features: here its encoder is not trained."""
    return _on_light_features("neural-linucb", lambda: NeuralLinUCB(_order_of_the_cosine(), **options))


def thompson(**options: Any) -> Ranker:
    """Return Thompson sampling on the light features."""
    return _on_light_features("thompson", lambda: ThompsonSampling(_order_of_the_cosine(), **options))


def similarity() -> Ranker:
    """Return the off-switch: plain cosine order, nothing learned."""
    return Ranker(name="similarity", encoder=_cosine_only, policy=SimilarityPolicy)


def uniform() -> Ranker:
    """Return a control: candidates drawn at random."""
    return Ranker(name="random", encoder=_cosine_only, policy=UniformPolicy)


def zero_shot() -> Ranker:
    """Return the arm without memory: all is written down, nothing is shown."""
    return Ranker(name="zero-shot", encoder=_cosine_only, policy=ShowNothing)


def latest() -> Ranker:
    """Return in-context reinforcement learning: the last k cases, whatever the task.

    As it is, with successes only, that is ICRLPlus; with ``retain_at=0``, so that failures are kept too, ICRL.
    """
    return Ranker(name="latest", encoder=_recency, policy=lambda: FrozenHead(np.ones(1)), newest=True)


_BY_NAME: Mapping[str, Callable[[], Ranker]] = {
    "auto": light,
    "light": light,
    "neural-linlogucb": neural_linlogucb,
    "linlogucb": linlogucb,
    "neural-logucb": neural_logucb,
    "neural-linucb": neural_linucb,
    "thompson": thompson,
    "similarity": similarity,
    "random": uniform,
    "zero-shot": zero_shot,
    "latest": latest,
}
_CREDITED = {
    "auto": light,
    "light": light,
    "neural-linlogucb": neural_linlogucb,
    "linlogucb": linlogucb,
    "neural-logucb": neural_logucb,
    "neural-linucb": neural_linucb,
    "thompson": thompson,
}


def resolve_ranker(ranker: str | Ranker, *, hindsight: bool, shared: bool = False, credit: str | Credit = "matched") -> Ranker:
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
    if shared and ranker not in ("auto", "light"):
        raise InvalidInput(f'policy_scope="shared" needs the ranker "light": {ranker!r} has no weights to share')
    options: dict[str, Any] = {"credit": resolve_credit(credit)} if ranker in _CREDITED else {}
    if ranker in ("auto", "light"):
        return light(hindsight=hindsight, shared=shared, **options)
    return cast("Callable[..., Ranker]", _BY_NAME[ranker])(**options)


def resolve_credit(credit: str | Credit) -> Credit:
    """Return the function that says which of several chosen cases a reward speaks of.

    >>> resolve_credit("all").__name__
    'credit_all'
    """
    if callable(credit):
        return credit
    if credit not in CREDITS:
        raise InvalidInput(f'credit must be "matched", "all", "first" or a function of the outcome, not {credit!r}')
    return CREDITS[credit]
