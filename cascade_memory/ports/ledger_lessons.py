"""A part of the ledger: what can be learned from outcomes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Feedback


class Lessons(Protocol):
    """Returns lessons (outcomes in the form from which a policy learns), and compacts recalls that are no longer learned from.

    The recalls of an episode share the credit for its outcome. An outcome that was withdrawn, or must not be learned from, has
    no lessons.
    """

    def feedback(self, outcome: int, shadow: str | None = None) -> list[Feedback]:
        """Return the lessons of one outcome, one per recall, for the live policy or the shadow policy of this name."""
        ...

    def history(self, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None) -> list[Feedback]:
        """Return the lessons of the last ``limit`` outcomes up to the key ``until``, in a namespace or in all, oldest first."""
        ...

    def last_outcome(self) -> int:
        """Return the key of the newest outcome ever recorded, even if it was forgotten since; 0 if there was none."""
        ...

    def asked(self, recall: int) -> tuple[str, NDArray[np.int64]] | None:
        """Return the query of a recall and the keys of its candidates; None if the recall was deleted."""
        ...

    def recalls_of(self, episode_key: int) -> list[int]:
        """Return the keys of an episode's recalls."""
        ...

    def took_back(self, namespace: int, since: int) -> bool:
        """Tell whether anything in a namespace was withdrawn, forgotten or purged after a log line."""
        ...

    def votes(self, namespace: int, limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Return (case keys, similarity, agreement) of the recalls of the last ``limit`` outcomes with a verified solution."""
        ...

    def compact(self, namespace: int, keep: int, limit: int) -> int:
        """Compact the recalls of settled episodes beyond the last ``keep`` outcomes: only what was shown stays.

        Return how many episodes were examined; fewer than ``limit`` means that no more are left for now.
        """
        ...
