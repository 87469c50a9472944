"""The built-in rankers, by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cascade_memory.assembly.light_ranker import START, light
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.similarity import FrozenHead, ShowNothing, SimilarityPolicy, UniformPolicy
from cascade_memory.encoders.cross_encoder import Base, CrossEncoder, load_base
from cascade_memory.encoders.cross_encoder.encoder import PairText, query_and_case_query
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.encoders.one_feature import CosineEncoder, RecencyEncoder
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Lookup, Ranker
from cascade_memory.ports.policy import Policy


def _cosine_only(dimension: int, lookup: Lookup) -> CosineEncoder:
    del dimension, lookup
    return CosineEncoder()


def _recency(dimension: int, lookup: Lookup) -> RecencyEncoder:
    del dimension, lookup
    return RecencyEncoder()


def _on_light_features(name: str, policy: Callable[[], Policy]) -> Ranker:
    return Ranker(name=name, encoder=LightEncoder, policy=policy, features=FEATURES)


def untrained() -> Ranker:
    """Make a ranker that always orders as the default does before any reward; like "similarity", it always shows a case."""
    return _on_light_features("untrained", lambda: FrozenHead(START))


def neural_linlogucb(**options: Any) -> Ranker:
    """Make the paper's bandit on the light features, with the initial weights of the default. ``alpha=0`` is greedy."""
    return _on_light_features("neural-linlogucb", lambda: NeuralLinLogUCB(START.copy(), **options))


def linlogucb(**options: Any) -> Ranker:
    """Make LinLogUCB on the light features."""
    return _on_light_features("linlogucb", lambda: LinLogUCB(len(FEATURES), **options))


def neural_logucb(**options: Any) -> Ranker:
    """Make NeuralLogUCB on the light features."""
    return _on_light_features("neural-logucb", lambda: NeuralLogUCB(len(FEATURES), **options))


def neural_linucb(**options: Any) -> Ranker:
    """Make Neural-LinUCB on the light features, which are not trained."""
    return _on_light_features("neural-linucb", lambda: NeuralLinUCB(START.copy(), **options))


def thompson(**options: Any) -> Ranker:
    """Make Thompson sampling on the light features."""
    return _on_light_features("thompson", lambda: ThompsonSampling(START.copy(), **options))


def cross_encoder(
    model: str,
    *,
    bandit: Callable[..., Policy] = NeuralLinLogUCB,
    schedule: Schedule | None = None,
    trained: bool = True,
    encoder_learning_rate: float = 1e-5,
    device: str | None = None,
    half: bool | None = None,
    max_tokens: int = 2_048,
    pair_text: PairText = query_and_case_query,
    **options: Any,
) -> Ranker:
    """Make the paper's ranker: a Hugging Face reranker that is trained online, with a linear head that explores.

    Args:
        model: A sequence classifier with one label: its folder, or its name on the Hugging Face hub.
        bandit: The head: ``NeuralLinLogUCB``, or ``NeuralLinUCB`` or ``ThompsonSampling`` from ``bandit``. With
            ``LinLogUCB`` or ``NeuralLogUCB``, the encoder is not trained: they learn from the pretrained reranker's features.
        schedule: When and how the encoder is trained.
        trained: False is the paper's NP-CBR: the pretrained reranker, unchanged; nothing is learned.
        encoder_learning_rate: The learning rate of AdamW; the paper chooses it from 1e-6, 3e-6, 1e-5 and 2e-5.
        device: "cuda", "cpu", ...; None takes CUDA if it is available.
        half: Compute in bfloat16; None does so on CUDA. Processors with AMX also gain (three times as fast in our measurement).
        max_tokens: The largest length of a pair; longer pairs are cut.
        pair_text: Builds the texts that the reranker reads; by default the two tasks, as in the paper.
        options: Options of the bandit.
    """
    on_frozen = bandit in (LinLogUCB, NeuralLogUCB)
    if on_frozen and (schedule is not None or not trained):
        raise InvalidInput(
            "LinLogUCB and NeuralLogUCB learn from the features of an untrained reranker: leave out schedule and trained"
        )
    if not on_frozen:
        options.setdefault("learning_rate", encoder_learning_rate)  # the paper has one eta for both
    loading = threading.Lock()
    loaded: list[Base] = []

    def base() -> Base:
        with loading:
            if not loaded:
                loaded.append(load_base(model, device=device, max_tokens=max_tokens, half=half))
            return loaded[0]

    def encoder(dimension: int, lookup: Lookup) -> CrossEncoder:
        del dimension, lookup
        return CrossEncoder(base(), pair_text=pair_text, learning_rate=encoder_learning_rate)

    def policy() -> Policy:
        head = base().head
        if not trained:
            return FrozenHead(head)
        return bandit(len(head) if on_frozen else head, **options)

    return Ranker(
        name=f"cross-encoder {model}",
        encoder=encoder,
        policy=policy,
        training=(schedule or Schedule()) if trained and not on_frozen else None,
        writes_features=False,
        reencodes=on_frozen,
    )


def similarity() -> Ranker:
    """Make a ranker that orders by cosine and learns nothing."""
    return Ranker(name="similarity", encoder=_cosine_only, policy=SimilarityPolicy)


def uniform() -> Ranker:
    """Make a control for experiments, which draws candidates at random."""
    return Ranker(name="random", encoder=_cosine_only, policy=UniformPolicy)


def zero_shot() -> Ranker:
    """Make the baseline without memory: recalls are logged, but no case is shown."""
    return Ranker(name="zero-shot", encoder=_cosine_only, policy=ShowNothing)


def latest() -> Ranker:
    """Make a ranker that shows the last k cases, whatever the task is: in-context reinforcement learning (ICRL).

    If only successes are stored, as by default, this is ICRLPlus. With ``Retention(retain_at=0)`` failures are stored too, and
    it is ICRL.
    """
    return Ranker(name="latest", encoder=_recency, policy=lambda: FrozenHead(np.ones(1)), newest=True)


CREDITED: Mapping[str, Callable[..., Ranker]] = {
    "auto": light,
    "light": light,
    "neural-linlogucb": neural_linlogucb,
    "linlogucb": linlogucb,
    "neural-logucb": neural_logucb,
    "neural-linucb": neural_linucb,
    "thompson": thompson,
}
BY_NAME: Mapping[str, Callable[..., Ranker]] = {
    **CREDITED,
    "similarity": similarity,
    "random": uniform,
    "zero-shot": zero_shot,
    "latest": latest,
}


# Whose parameters are the options of a ranker.
TAKERS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "auto": (LightPolicy,),
    "light": (LightPolicy,),
    "neural-logucb": (NeuralLogUCB,),
    **dict.fromkeys(("neural-linlogucb", "linlogucb", "neural-linucb", "thompson"), (NeuralLinLogUCB,)),
}
OF_A_MODEL = (cross_encoder, NeuralLinLogUCB)  # those of a reranker's folder, or of its name on the hub
