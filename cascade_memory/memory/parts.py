"""What a memory is assembled from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.memory.pool import Shared
from cascade_memory.ports.case_index import CaseIndex
from cascade_memory.ports.case_mirror import CaseMirror
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.ledger import Ledger
from cascade_memory.ports.pair_encoder import PairEncoder
from cascade_memory.ports.policy import Policy
from cascade_memory.ports.solution_matcher import SolutionMatcher
from cascade_memory.snapshots import SnapshotStore

Lookup = Callable[[NDArray[np.int64]], NDArray[np.float32]]  # vectors of case keys


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


class Lock(Protocol):
    """Exclusive ownership of a folder, freed by the operating system when its holder dies."""

    def try_acquire(self) -> bool:
        """Take it if it is free; say whether it is held now."""
        ...

    def release(self) -> None:
        """Let go."""
        ...


class MirrorBuild(Protocol):
    """A mirror being built from the ledger in another process."""

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        ...

    def finish(self) -> tuple[int, str]:
        """Put the finished mirror in place; return the greatest case key it holds, and its seal."""
        ...

    def abandon(self) -> None:
        """Stop it and remove what it left."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything below the verbs. ``mirror`` and ``lock`` are None for a memory in RAM."""

    ledger: Ledger
    embedder: Embedder
    ranker: Ranker
    shadow: Ranker | None  # watches, and is never followed
    fallback: Policy
    matcher: SolutionMatcher
    hindsight: bool
    direct: bool = False  # embedder and ranker are a few lines of ours, which cannot hang: no thread is needed to call them
    index: Callable[[int, str], CaseIndex]  # (dimension, namespace)
    snapshots: SnapshotStore
    mirror: CaseMirror | None = None
    lock: Lock | None = None
    build: Callable[[], MirrorBuild] | None = None
    sweep: Callable[[], tuple[str, ...]] = tuple  # removes what purging must not leave; says what it could not
