"""Features of (query, case) pairs from a reranker: the pooled vector that enters its last layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.cross_encoder.batching import Remembered, TokenBudget, padded
from cascade_memory.encoders.cross_encoder.loading import Base, served
from cascade_memory.encoders.cross_encoder.training import Apprentice, read_weights, write_weights
from cascade_memory.encoders.torch_settings import calm
from cascade_memory.ports.encoders import Candidates, Pair, Query
from cascade_memory.ports.policy import Floats

PairText: TypeAlias = Callable[[Pair], tuple[str, str]]

_SCORED_AT_ONCE = 16_384  # tokens
_REMEMBERED = 4_096  # pairs


def query_and_case_query(pair: Pair) -> tuple[str, str]:
    """Return the texts that the reranker reads in the paper: the task, and the task of the case without its solution."""
    return pair.query, pair.text


class CrossEncoder:
    """A reranker as a ``PairEncoder``: it reads each pair once, and its features are the input of the last layer.

    An encoder never changes: ``trained`` returns another one, so that recalls can use this one until the other is ready.
    """

    dimension: int

    def __init__(self, base: Base, *, pair_text: PairText = query_and_case_query, learning_rate: float = 1e-5) -> None:
        self._base, self._pair_text = base, pair_text
        self.dimension = len(base.head)
        self.identity = base.identity
        self.version = 0  # the number of its training steps
        self.fitted_outcomes = 0
        self.serving = base.serving  # the model that scores
        self.apprentice = Apprentice(base, learning_rate)  # the copy that is trained
        self.budget = TokenBudget(_SCORED_AT_ONCE)
        self._tokens: Remembered[dict[str, list[int]]] = Remembered(_REMEMBERED)
        self._features: Remembered[NDArray[np.float32]] = Remembered(_REMEMBERED)

    @property
    def head(self) -> Floats:
        """The pretrained last layer, with which theta starts."""
        return self._base.head

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, d) features."""
        del similarity
        texts = zip(candidates.texts, candidates.heads, strict=True)
        return self.encode_pairs([Pair(query=query.text, text=text, head=head) for text, head in texts])

    def encode_pairs(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return (n, d) features of any pairs; those of recent pairs are not computed again."""
        import torch

        features = np.zeros((len(pairs), self.dimension), np.float32)
        known = [self._features.get(pair) for pair in pairs]
        missing = [place for place, found in enumerate(known) if found is None]
        for place, found in enumerate(known):
            if found is not None:
                features[place] = found
        if not missing:
            return features
        tokens = [self.tokenised(pairs[place]) for place in missing]

        def score(batch: list[int]) -> None:
            inputs = padded([tokens[i] for i in batch], self._base)
            with calm(torch, short=False), torch.inference_mode():
                pooled = self.serving(**inputs).logits.float().cpu().numpy()
            for row, i in enumerate(batch):
                features[missing[i]] = pooled[row]
                self._features.put(pairs[missing[i]], pooled[row].copy())

        self.budget.run([len(each["input_ids"]) for each in tokens], score, restart=lambda: None)
        return features

    def tokenised(self, pair: Pair) -> dict[str, list[int]]:
        """Return the tokens of a pair as the reranker reads them."""
        found = self._tokens.get(pair)
        if found is None:
            first, second = self._pair_text(pair)
            said = self._base.tokenizer(first, second, truncation=True, max_length=self._base.max_tokens)
            found = {name: said[name] for name in self._base.inputs if name in said}
            self._tokens.put(pair, found)
        return found

    def trained(
        self, pairs: Sequence[Pair], labels: Floats, weights: Floats, theta: Floats, *, joint: bool, loss: str = "logistic"
    ) -> tuple[CrossEncoder, Floats]:
        """Return an encoder after one more step of AdamW, and the new head; this encoder does not change."""
        tokens = [self.tokenised(pair) for pair in pairs]
        theta = self.apprentice.step(tokens, labels, weights, theta, joint=joint, loss=loss)
        return self._with(self.apprentice.model, steps=1, outcomes=len(pairs)), theta

    def _with(self, model: Any, *, steps: int, outcomes: int) -> CrossEncoder:
        other = copy.copy(self)
        other.serving = served(model, self._base.device, half=self._base.half)
        other._features = Remembered(_REMEMBERED)
        other.version, other.fitted_outcomes = self.version + steps, self.fitted_outcomes + outcomes
        return other

    def untrained(self) -> CrossEncoder:
        """Return the pretrained encoder, without anything that this one has learned."""
        return CrossEncoder(self._base, pair_text=self._pair_text, learning_rate=self.apprentice.learning_rate)

    def retain(self, cases: Candidates) -> None:
        """Do nothing: nothing is stored about a case, and the cache finds the features of a pair by its text."""

    def emptied(self) -> CrossEncoder:
        """Return an encoder with an empty cache of pairs."""
        other = copy.copy(self)
        other._tokens, other._features = Remembered(_REMEMBERED), Remembered(_REMEMBERED)
        return other

    def save(self, file: Path) -> None:
        """Write the weights as safetensors, with a manifest in the header."""
        about = {"encoder": self.identity, "version": self.version, "fitted_outcomes": self.fitted_outcomes}
        write_weights(file, self.apprentice.model if self.version else self._base.model, about)

    def loaded(self, file: Path) -> CrossEncoder:
        """Return this encoder with the weights that ``save`` wrote; those of another architecture are refused."""
        about, weights = read_weights(file, self.identity)
        other = CrossEncoder(self._base, pair_text=self._pair_text, learning_rate=self.apprentice.learning_rate)
        other.apprentice.take(weights)
        return other._with(other.apprentice.model, steps=int(about["version"]), outcomes=int(about["fitted_outcomes"]))
