"""A part of the ledger: forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Forgetting(Protocol):
    """Deletes, durably, whatever somebody wants gone, and nobody else's.

    A case stays while anybody vouches for it: an episode that ended in it, or somebody who put it in by hand. What is left is
    told as the word of the first of them. Each call returns how many ``cases``, ``episodes``, ``recalls`` and ``outcomes``
    went, and the log tells it. The keys of a case that goes are taken out of the candidates of every recall.
    """

    def forget(self, namespace: int, keys: Sequence[int]) -> dict[str, int]:
        """Delete cases, whoever vouches for them, and the episodes that ended in one of them: their queries say the same."""
        ...

    def forget_where(self, namespace: int, where: object) -> dict[str, int]:
        """Delete what was said with such metadata; a case goes when nobody else vouches for it."""
        ...

    def forget_episode(self, episode_id: str) -> dict[str, int]:
        """Delete an episode, and the case it made unless somebody else vouches for it."""
        ...

    def forget_namespace(self, namespace: int) -> dict[str, int]:
        """Delete everything of a namespace except its name and its number, which a recall may be using at this moment."""
        ...

    def scrub(self, namespace: int) -> tuple[int, bool]:
        """Leave no byte of what was deleted in any file, nor the namespace's log of searches, whose queries nothing finds.

        Return the line of the log about it, and whether it could be done: not while another process reads an older state.
        """
        ...
