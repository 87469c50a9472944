"""Static rules to beat: fixed in advance, nothing learned. Passed to the library as Ranker objects, like anybody's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cascade_memory import Ranker
from cascade_memory.assembly.rankers import light
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.bandit.similarity import SimilarityPolicy, plain_choice
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.encoders.lexical import Rarity, word_terms
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.ports.pair_encoder import Candidates, Query
from cascade_memory.ports.policy import Choice, Slate

Array = NDArray[np.float64]


class WordsEncoder(CosineEncoder):
    """[cosine, word TF-IDF similarity]; IDF counted as the stream goes."""

    identity = "benchmark-words"

    def __init__(self) -> None:
        self._rarity = Rarity()

    def retain(self, cases: Candidates) -> None:
        self._rarity.add(word_terms(list(cases.texts)), len(cases))

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        words = self._rarity.overlap(word_terms(list(candidates.texts)), len(candidates), word_terms([query.text])[1])
        return np.stack([similarity, words], axis=1)


class StaticRule(SimilarityPolicy):
    """Shows the candidate with the best ``score(slate)`` if it passes ``keep(slate, best)``."""

    def __init__(self, name: str, score: Callable[[Slate], Array], keep: Callable[[Slate, int], bool]) -> None:
        self.name, self._score, self._keep = name, score, keep

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        score = self._score(slate)
        chosen = np.lexsort((-slate.similarity, -score))[:k]
        choice = plain_choice(slate, chosen, score)
        return choice if self._keep(slate, int(chosen[0])) else replace(choice, abstained=True)


def vote_share(slate: Slate, best: int, sharpness: float | None) -> float:
    """Return the share of the candidates' votes for the best one's solution; by cosine, or by e^(sharpness x cosine)."""
    cosine = np.asarray(slate.similarity, np.float64)
    votes = np.maximum(cosine, 0) if sharpness is None else np.exp(sharpness * (cosine - cosine.max()))
    return float(votes[slate.groups == slate.groups[best]].sum() / max(votes.sum(), 1e-12))


def _static(
    name: str,
    *,
    score: Callable[[Slate], Array] = lambda slate: np.asarray(slate.similarity, np.float64),
    keep: Callable[[Slate, int], bool] = lambda _slate, _best: True,
    encoder: type[CosineEncoder] = CosineEncoder,
) -> Ranker:
    return Ranker(name=name, encoder=lambda _dimension, _lookup: encoder(), policy=lambda: StaticRule(name, score, keep))


def _voted(sharpness: float) -> Callable[[Slate], Array]:
    def score(slate: Slate) -> Array:
        return np.array([vote_share(slate, i, sharpness) for i in range(len(slate))])

    return score


def ranking_rules() -> dict[str, Ranker]:
    """Return rules that always show a case, in an order of their own."""
    rules = {
        f"cosine + {weight} words": _static(
            f"words-{weight}", score=lambda s, w=weight: s.similarity + w * s.features[:, 1], encoder=WordsEncoder
        )
        for weight in (0.1, 0.25, 0.5)
    }
    return {**rules, **{f"vote e^{beta}cos": _static(f"vote-{beta}", score=_voted(beta)) for beta in (10, 20, 40)}}


def abstaining_rules() -> dict[str, Ranker]:
    """Return rules that show the most similar case, or none."""
    rules = {
        f"cosine >= {limit}": _static(f"cosine-{limit}", keep=lambda s, b, c=limit: s.similarity[b] >= c)
        for limit in (0.5, 0.6, 0.7, 0.8)
    }
    shares: list[tuple[float | None, float]] = [(None, 0.5), (10, 0.3), (20, 0.3), (20, 0.5)]
    for beta, limit in shares:
        name = f"vote share >= {limit}" + ("" if beta is None else f", e^{beta}cos")
        rules[name] = _static(name, keep=lambda s, b, beta=beta, limit=limit: vote_share(s, b, beta) >= limit)
    return rules


class MaskedEncoder(LightEncoder):
    """The light encoder with some columns silenced: what did they add?"""

    silent: tuple[str, ...] = ()

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        features = super().encode(query, candidates, similarity)
        features[:, [FEATURES.index(name) for name in self.silent]] = 0.0
        return features


def without(*columns: str) -> Ranker:
    """Return the light ranker without some of its features."""
    encoder = type("Masked", (MaskedEncoder,), {"silent": columns})
    return replace(light(), encoder=encoder)


def exploring(alpha: float) -> Ranker:
    """Return the light ranker with another exploration coefficient."""
    return replace(light(), policy=lambda: LightPolicy(len(FEATURES), exploration=UpperConfidence(alpha)))
