"""What a capability may hear of the ledger inside a transaction, so that its own rows stay true together with all others.

There are four events. Whoever hears one gets the transaction and keys, and may read and write rows. What only has to go with an
episode, an outcome or a namespace needs no event: its table says so (``declaring``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cascade_memory.domain.records import Settlement
from cascade_memory.ledger.database import Connection

# An outcome that was ``replaced`` is told of again as soon as the one in its place is stored.
WhyWithdrawn: TypeAlias = Literal["replaced", "taken back", "forgotten"]
# Nothing may stay that was made of a case that is ``forgotten``, or worded differently now; one that is ``lost`` had to make
# room or was deleted with its source, and episodes may still verify it.
WhyGone: TypeAlias = Literal["forgotten", "worded differently", "lost"]


@dataclass(frozen=True, slots=True)
class Standing:
    """An outcome that counts from now on."""

    episode: int
    outcome: int
    new: Settlement | None = None  # None: an older one counts again as it was
    shown: Sequence[int] = ()  # the cases that its recalls had shown
    replaced: int | None = None  # the outcome that it has replaced
    forgotten: bool = False  # whether that one is about to be forgotten
    is_checked: bool = True  # whether actions of the episode were checked for known mistakes, or may have been


class Observer:
    """Hears the four events; whoever wants to hear one defines its method anew."""

    def on_settled(self, tx: Connection, now: Standing) -> None:
        """Hear that an outcome counts now: all else of it is stored."""

    def on_withdrawn(self, tx: Connection, outcome: int, episode: int, why: WhyWithdrawn) -> None:
        """Hear that an outcome counts no more; its row is still there."""

    def on_case_gone(self, tx: Connection, cases: Sequence[int], why: WhyGone) -> None:
        """Hear that cases are gone, or say something else now."""

    def on_episode_gone(self, tx: Connection, episode: int) -> None:
        """Hear that an episode is about to be deleted, with all that belongs to it."""
