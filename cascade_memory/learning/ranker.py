"""A ranker orders the candidates of a recall: it is a pair encoder with a policy that learns from outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.ports.encoders import PairEncoder
from cascade_memory.ports.policy import Feedback, Policy

Lookup = Callable[[NDArray[np.int64]], NDArray[np.float32]]  # case keys -> their vectors


class Shared(Protocol):
    """Weights that the policies of all namespaces share as the mean of their prior."""

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes."""
        ...

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop everything learned, and learn again from these outcomes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A recipe for a pair encoder and a policy; each namespace gets its own.

    ``encoder(dimension, lookup)`` creates an encoder, given the length of the vectors and a function that looks up the
    vectors of stored cases; ``policy()`` creates a policy. ``features`` names the encoder's columns for ``explain()``. With
    ``newest``, the candidates are the newest cases instead of the most similar ones.
    """

    name: str
    encoder: Callable[[int, Lookup], PairEncoder]
    policy: Callable[[], Policy]
    features: tuple[str, ...] = ()
    shared: Shared | None = None  # weights that the policies of a folder share as the mean of their prior
    newest: bool = False
    training: Schedule | None = None  # of an encoder that is trained, with a NeuralLinLogUCB as its head
    writes_features: bool = True  # with each recall; False if they can be computed again from the texts
    reencodes: bool = False  # the features of chosen pairs are computed again from their texts when the policy learns
