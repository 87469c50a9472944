"""What a capability may say about actors in one namespace: whose outcomes teach, and whose texts may be shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Screen:
    """Lets every outcome teach, and every text be shown; a capability overrides what it knows better.

    >>> screen = Screen()
    >>> screen.teaches(1), screen.held(["ann", None], np.array([1, 2]), "bob", "an episode").tolist()
    ((True, []), [False, False])
    """

    active: bool = False  # whether it may keep an outcome from teaching; otherwise it is not asked
    rebuild_due: bool = False  # whether all outcomes must be learned again, since others may teach now

    def look_up(self) -> None:
        """Read again what was decided about actors; called when cases were hidden or shown again."""

    def teaches(self, outcome: int) -> tuple[bool, list[int]]:
        """Take a new outcome into account; return whether it may teach, and the keys of its recalls if it may not."""
        del outcome
        return True, []

    def rebuild(self, until: int) -> set[int]:
        """Evaluate the outcomes up to a key again; return the keys of the recalls whose outcomes must not teach."""
        del until
        return set()

    def held(
        self, authors: Sequence[str | None], groups: NDArray[np.int64], asker: str | None, episode_id: str
    ) -> NDArray[np.bool_]:
        """Return, for each text of these authors, whether it must not be shown to the asker in an episode.

        ``groups`` says which texts mean the same. Called by many threads at once.
        """
        del groups, asker, episode_id
        return np.zeros(len(authors), bool)

    @property
    def silenced(self) -> frozenset[str]:
        """The actors from whom nothing may be learned, as somebody has decided."""
        return frozenset()
