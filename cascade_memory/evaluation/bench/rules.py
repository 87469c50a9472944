"""Rankers for comparison: fixed rules that never learn, and the light ranker without some of its signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cascade_memory import Ranker
from cascade_memory.assembly import light
from cascade_memory.bandit import SimilarityPolicy, plain_choice
from cascade_memory.encoders import FEATURES, CosineEncoder, LightEncoder, Rarity, word_terms
from cascade_memory.ports import Candidates, Choice, Query, Slate

Scores = NDArray[np.float64]


class WordsEncoder(CosineEncoder):
    """Two features, the cosine and the word TF-IDF similarity; IDF is computed from the cases stored so far."""

    identity = "benchmark-words"

    def __init__(self) -> None:
        self._words = Rarity(word_terms)

    def retain(self, cases: Candidates) -> None:
        """Add new cases to the counts of how many cases contain each word; rare words weigh more."""
        self._words.add(cases.texts)

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute a column of cosines and a column of word similarities."""
        return np.stack([similarity, self._words.shared(query.text, candidates.texts)], axis=1)


class StaticRule(SimilarityPolicy):
    """Shows the candidates with the highest ``score(slate)``, or none if ``keep(slate, best)`` is false for the best one."""

    def __init__(self, name: str, score: Callable[[Slate], Scores], keep: Callable[[Slate, int], bool]) -> None:
        self.name, self._score, self._keep = name, score, keep

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Order by the rule's score; of equal scores, the more similar case comes first."""
        del abstain, seed
        score = self._score(slate)
        chosen = np.lexsort((-slate.similarity, -score))[:k]
        choice = plain_choice(slate, chosen, score)
        return choice if self._keep(slate, int(chosen[0])) else replace(choice, abstained=True)


def vote_share(slate: Slate, best: int, sharpness: float | None) -> float:
    """Compute the share of the candidates' votes that the solution of the candidate ``best`` gets.

    Each candidate votes for its own solution. Its vote counts as its cosine or, with ``sharpness``, as e^(sharpness x cosine).

    >>> slate = Slate(features=np.zeros((3, 0)), similarity=np.array([0.6, 0.2, 0.2]), groups=np.array([0, 0, 1]))
    >>> round(vote_share(slate, 0, None), 2)
    0.8
    """
    cosine = np.asarray(slate.similarity, np.float64)
    votes = np.maximum(cosine, 0) if sharpness is None else np.exp(sharpness * (cosine - cosine.max()))
    return float(votes[slate.groups == slate.groups[best]].sum() / max(votes.sum(), 1e-12))


def ranking_rules() -> dict[str, Ranker]:
    """Make rankers, by their names, that always show a case; each orders the candidates in its own way.

    >>> list(ranking_rules())[0]
    'cosine + 0.1 words'
    """
    words = {f"cosine + {weight} words": _rule(f"words-{weight}", score=_with_words(weight)) for weight in (0.1, 0.25, 0.5)}
    return {**words, **{f"vote e^{beta}cos": _rule(f"vote-{beta}", score=_voted(beta)) for beta in (10, 20, 40)}}


def abstaining_rules() -> dict[str, Ranker]:
    """Make rankers, by their names, that show the most similar case, or none if it does not reach a limit.

    >>> list(abstaining_rules())[0]
    'cosine >= 0.5'
    """
    rules = {f"cosine >= {limit}": _rule(f"cosine-{limit}", keep=_alike(limit)) for limit in (0.5, 0.6, 0.7, 0.8)}
    shares: list[tuple[float | None, float]] = [(None, 0.5), (10, 0.3), (20, 0.3), (20, 0.5)]
    for beta, limit in shares:
        name = f"vote share >= {limit}" + ("" if beta is None else f", e^{beta}cos")
        rules[name] = _rule(name, keep=_agreed(beta, limit))
    return rules


def without(*columns: str) -> Ranker:
    """Make the light ranker without the signals that ``columns`` names.

    >>> without("words").name
    'light'
    """
    encoder = type("Masked", (_MaskedEncoder,), {"silent": columns})
    return replace(light(), encoder=encoder)


class _MaskedEncoder(LightEncoder):
    """The light encoder with the columns ``silent`` set to zero, to measure what these signals add."""

    silent: tuple[str, ...] = ()

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        features = super().encode(query, candidates, similarity)
        features[:, [FEATURES.index(name) for name in self.silent]] = 0.0
        return features


def _cosine(slate: Slate) -> Scores:
    return np.asarray(slate.similarity, np.float64)


def _always(slate: Slate, best: int) -> bool:
    del slate, best
    return True


def _rule(name: str, *, score: Callable[[Slate], Scores] = _cosine, keep: Callable[[Slate, int], bool] = _always) -> Ranker:
    encoder = WordsEncoder if name.startswith("words") else CosineEncoder
    return Ranker(name=name, encoder=lambda _dimension, _lookup: encoder(), policy=lambda: StaticRule(name, score, keep))


def _with_words(weight: float) -> Callable[[Slate], Scores]:
    return lambda slate: np.asarray(slate.similarity + weight * slate.features[:, 1], np.float64)


def _voted(sharpness: float) -> Callable[[Slate], Scores]:
    return lambda slate: np.array([vote_share(slate, i, sharpness) for i in range(len(slate))])


def _alike(limit: float) -> Callable[[Slate, int], bool]:
    return lambda slate, best: bool(slate.similarity[best] >= limit)


def _agreed(sharpness: float | None, limit: float) -> Callable[[Slate, int], bool]:
    return lambda slate, best: vote_share(slate, best, sharpness) >= limit
