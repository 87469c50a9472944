"""A part of the ledger: what outcomes teach."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Feedback


class Lessons(Protocol):
    """Tells what was learned, outcome by outcome, and lets go of what nobody learns from any more.

    The recalls of an episode share the credit for its outcome. An outcome that was taken back, or that teaches nothing, has no
    lessons.
    """

    def feedback(self, outcome: int, shadow: str | None = None) -> list[Feedback]:
        """Return what an outcome teaches, one entry a recall: the live policy, or the shadow policy of this name."""
        ...

    def history(self, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None) -> list[Feedback]:
        """Return what the last outcomes of a namespace (or of all) up to one of them teach, oldest first."""
        ...

    def last_outcome(self) -> int:
        """Return the key of the newest outcome there ever was: one that was forgotten counts. 0 where there was none."""
        ...

    def asked(self, recall: int) -> tuple[str, NDArray[np.int64]] | None:
        """Return the query of a recall and the keys of its candidates; None when it is gone."""
        ...

    def recalls_of(self, episode_key: int) -> list[int]:
        """Return the keys of an episode's recalls."""
        ...

    def took_back(self, namespace: int, since: int) -> bool:
        """Say whether anything of a namespace was taken back, forgotten or purged after a line of the log."""
        ...

    def votes(self, namespace: int, limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Return (case keys, similarity, agreement) of the recalls of the last outcomes in which something was verified."""
        ...

    def compact(self, namespace: int, keep: int, limit: int) -> int:
        """Shrink the recalls of settled episodes beyond the last ``keep`` outcomes: only what was shown stays.

        Return how many episodes were looked at; fewer than ``limit`` means that there are no more for now.
        """
        ...
