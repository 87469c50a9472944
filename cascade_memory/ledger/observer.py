"""The events that tell a capability, inside a transaction, what changes in the ledger, so that its own rows stay consistent.

There are four events. The method for an event gets the transaction and keys, and may read and write rows. Rows that only have
to be deleted with an episode, an outcome or a namespace need no event: their table declares this (``declaring``). Further
methods take back actions of the capability, carry its rows through an export where ``nested=`` of the table does not suffice,
hear when an import is over, and repair faulty rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from cascade_memory.domain.actions import NewAction, Taken
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
    watched: bool = True  # False if no observer has said that it ``watches`` the episode


class Arrivals(Protocol):
    """An import, as far as an observer needs it."""

    def case_here(self, identity: object, namespace: int) -> int | None:
        """Return the key, in this ledger, of a case that the export names by its id; None if it is not here."""
        ...

    def vector(self, text: object) -> bytes:
        """Check a vector of the export, and return it as it is stored."""
        ...


class Observer:
    """Receives the four events; a subclass overrides the methods that it needs."""

    watches: str = ""  # SQL on a row of ``episode``: whether a reward changes rows that the capability has about it
    kinds: tuple[str, ...] = ()  # of the actions that it takes back (``declaring.ActionKind``)

    def on_settled(self, tx: Connection, now: Standing) -> None:
        """React to an outcome that counts from now on; everything else about it is stored already."""

    def on_withdrawn(self, tx: Connection, outcome: int, episode: int, why: WhyWithdrawn) -> None:
        """React to an outcome that no longer counts; its row still exists."""

    def on_case_gone(self, tx: Connection, cases: Sequence[int], why: WhyGone) -> None:
        """React to cases that are gone or are worded differently now."""

    def on_episode_gone(self, tx: Connection, episode: int) -> None:
        """React to an episode that is about to be deleted, with everything that belongs to it."""

    def take_back(self, tx: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
        """Undo ``taken``, an action of one of the ``kinds``; log ``action``. Raise ``UndoRefused`` if what it did is gone."""
        raise NotImplementedError

    def exported(self, tx: Connection, cases: Mapping[int, str]) -> Mapping[str, Callable[[Any], Mapping[str, Any]]]:
        """Return, by the table of a row ("outcome", "action"), a function that returns further fields for the row's record.

        The function gets the key of an outcome, or the id of an action. ``cases`` are the ids of all cases by their keys.
        """
        del tx, cases
        return {}

    def on_imported(
        self, tx: Connection, owner: str, key: Any, namespace: int, record: Mapping[str, Any], here: Arrivals
    ) -> None:
        """Check and store those fields of an imported record; its own row is stored already, in the table ``owner``."""

    def on_import_ended(self, tx: Connection, namespace: int, *, of_audit: bool) -> None:
        """React to an import that has stored something in a namespace; ``of_audit``: entries of the audit log, too."""

    def cured(self, tx: Connection, table: str, key: Any, vector: Callable[[str], bytes]) -> str | None:
        """Repair a faulty row of one of its tables, and say what was done; None if the row should be deleted.

        ``vector`` returns the vector of a text, as it is stored.
        """
        del tx, table, key, vector
        return None
