"""What ranks the candidates of a recall: a pair encoder, and a policy that learns from outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.ports.pair_encoder import PairEncoder
from cascade_memory.ports.policy import Feedback, Policy

Lookup = Callable[[NDArray[np.int64]], NDArray[np.float32]]  # vectors of case keys


class Shared(Protocol):
    """What the policies of all namespaces lean on."""

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes."""
        ...

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Learn afresh."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A pair encoder and a policy, made anew for each namespace.

    ``encoder(dimension, lookup)`` gets the length of a vector and a way to look up the vectors of stored cases;
    ``policy()`` gets nothing. ``features`` names the encoder's columns for ``explain()``. With ``newest`` the
    candidates are the newest cases instead of the most similar ones.
    """

    name: str
    encoder: Callable[[int, Lookup], PairEncoder]
    policy: Callable[[], Policy]
    features: tuple[str, ...] = ()
    shared: Shared | None = None  # what its policies lean on in every namespace of a folder
    newest: bool = False
    training: Schedule | None = None  # of an encoder that learns, under a NeuralLinLogUCB
    writes_features: bool = True  # with each recall; an encoder whose features can be had again from the texts need not
