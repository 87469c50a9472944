"""What a memory is assembled from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.case_index import CaseIndex
from cascade_memory.ports.case_mirror import CaseMirror
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.ledger import Ledger
from cascade_memory.ports.policy import Policy
from cascade_memory.ports.solution_matcher import SolutionMatcher
from cascade_memory.snapshots import SnapshotStore


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
