"""A copy of the cases in somebody else's database: for its index, and for its tools. Never the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case


class CaseMirror(Protocol):
    """Holds every case of every namespace, a little late. It may fail in any way, and is then fed again."""

    @property
    def shared(self) -> bool:
        """True for a server: it survives our death, any process may ask it, and its writes do not hold this one up."""
        ...

    @property
    def place(self) -> str:
        """Where it stands, to tell it from another mirror of the same ledger; empty for the folder's own."""
        ...

    @property
    def answers(self) -> bool:
        """False when it has to be prepared again before it can be asked."""
        ...

    @property
    def trouble(self) -> str:
        """Say, in words, why it could not be asked the last time; empty when it could."""
        ...

    @property
    def residue(self) -> str:
        """Say, in words, where something may be left after ``discard``; empty when nothing can be."""
        ...

    def exists(self) -> bool:
        """Say whether there is anything, without looking at it."""
        ...

    def seal(self) -> str:
        """Return, once it was closed, what tells whether it has changed when it is opened again; empty where nothing can."""
        ...

    def is_sealed(self, before: str) -> bool:
        """Say whether it is what it was when it was sealed, without looking at it otherwise."""
        ...

    def open(self) -> None:
        """Get ready to be fed. Slow."""
        ...

    def upsert(self, namespace: str, cases: Sequence[Case], vectors: NDArray[np.float32]) -> None:
        """Store cases."""
        ...

    def delete(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove cases; unknown ids are ignored."""
        ...

    def drop(self, namespace: str) -> None:
        """Remove everything of a namespace."""
        ...

    def count(self, namespace: str) -> int:
        """Return the number of cases of a namespace."""
        ...

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Get ready to be asked. Slow; recall never does this."""
        ...

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of about the k nearest."""
        ...

    def close(self) -> None:
        """Let go, with everything saved."""
        ...

    def recover(self) -> bool:
        """Get ready to be used again after a failure; return False when nothing of what was fed is left."""
        ...

    def discard(self) -> None:
        """Delete everything, without looking at it."""
        ...
