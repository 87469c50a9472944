"""The protocols of an index that finds nearest neighbours by cosine, and of a mirror, which holds a copy of the cases.

A mirror is a copy in an external database, for its index and for other tools. It is never the source of truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case


class CaseIndex(Protocol):
    """Finds the nearest neighbours, by cosine, among the unit vectors that it holds."""

    @property
    def count(self) -> int:
        """The number of vectors in the index."""
        ...

    @property
    def bytes(self) -> int:
        """How much memory the vectors take, roughly."""
        ...

    def upsert(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those of known keys. The very next ``nearest`` must see them."""
        ...

    def remove(self, keys: Sequence[int]) -> None:
        """Remove these keys; unknown keys are ignored."""
        ...

    def clear(self) -> None:
        """Drop everything."""
        ...

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of keys that ``nearest`` has just found; zeros for a key that was removed since."""
        ...

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and cosines of the k nearest vectors, best first; with ``among``, of these keys only."""
        ...


class CaseMirror(Protocol):
    """Holds every case of every namespace, with some delay. After a failure of any kind it is filled again."""

    @property
    def shared(self) -> bool:
        """True for a server: it outlives this process, any process may query it, and its writes do not block this one."""
        ...

    @property
    def place(self) -> str:
        """The location, which distinguishes several mirrors of one ledger; empty for the mirror in the folder itself."""
        ...

    @property
    def answers(self) -> bool:
        """False if the mirror has to be prepared again before it can be queried."""
        ...

    @property
    def trouble(self) -> str:
        """The reason why the last query failed, as text; empty if it succeeded."""
        ...

    @property
    def residue(self) -> str:
        """Where data may be left after ``discard``, as text; empty if nothing can be left."""
        ...

    def exists(self) -> bool:
        """Say whether there is a mirror, without reading it."""
        ...

    def seal(self) -> str:
        """Return a text by which a later change of the closed mirror can be detected; empty if that is impossible."""
        ...

    def is_sealed(self, before: str) -> bool:
        """Tell whether the mirror is unchanged since ``seal`` returned ``before``, without reading its content."""
        ...

    def open(self) -> None:
        """Prepare the mirror for receiving cases. This may be slow."""
        ...

    def upsert(self, namespace: str, cases: Sequence[Case], vectors: NDArray[np.float32]) -> None:
        """Store cases."""
        ...

    def delete(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove cases; unknown ids are ignored."""
        ...

    def drop(self, namespace: str) -> None:
        """Remove everything in a namespace."""
        ...

    def count(self, namespace: str) -> int:
        """Return the number of cases in a namespace."""
        ...

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Prepare the mirror for queries. This may be slow; a recall never calls it."""
        ...

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of approximately the k nearest cases."""
        ...

    def close(self) -> None:
        """Save everything and close."""
        ...

    def recover(self) -> bool:
        """Make the mirror usable again after a failure; return False if nothing of its content is left."""
        ...

    def discard(self) -> None:
        """Delete everything, without reading it."""
        ...
