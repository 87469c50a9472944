"""The events that tell a capability, inside a transaction, what changes in the ledger, so that its own rows stay consistent.

There are four events. The method for an event gets the transaction and keys, and may read and write rows. Rows that only have
to be deleted with an episode, an outcome or a namespace need no event: their table declares this (``declaring``).
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
    """Receives the four events; a subclass overrides the methods of those events that it needs."""

    def on_settled(self, tx: Connection, now: Standing) -> None:
        """React to an outcome that counts from now on; everything else about it is stored already."""

    def on_withdrawn(self, tx: Connection, outcome: int, episode: int, why: WhyWithdrawn) -> None:
        """React to an outcome that no longer counts; its row still exists."""

    def on_case_gone(self, tx: Connection, cases: Sequence[int], why: WhyGone) -> None:
        """React to cases that are gone or are worded differently now."""

    def on_episode_gone(self, tx: Connection, episode: int) -> None:
        """React to an episode that is about to be deleted, with everything that belongs to it."""
