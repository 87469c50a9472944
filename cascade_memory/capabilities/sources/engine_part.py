"""Holds back cases of actors with a bad record, and puts actors into quarantine whose record is bad beyond doubt."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cascade_memory.capabilities.sources.rows import ActorRows
from cascade_memory.capabilities.sources.standings import Standings
from cascade_memory.cycle.recall import Recalled
from cascade_memory.domain.actions import NewAction
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.part import EnginePart, Masked
from cascade_memory.engine.parts import Parts
from cascade_memory.visible import on_one_line

RECORD = "its record is bad beyond doubt"  # the note on a quarantine that no person decided


class Quarantines(Protocol):
    """The part of an engine that is needed for a quarantine."""

    parts: Parts

    def follow(self) -> bool:
        """Apply new lines of the ledger's log."""
        ...

    def loaded(self) -> list[NamespaceState]:
        """Return the states of the namespaces that are loaded."""
        ...


class Judging(EnginePart):
    """Acts on the records of actors, which each namespace's ``Standings`` keep."""

    def __init__(self, engine: Quarantines) -> None:
        self._engine, self.rows = engine, ActorRows(engine.parts.ledger.connections)

    def screen(self, namespace_id: int, *, learns: bool) -> Standings:
        """Return the standings of the actors of a namespace."""
        return Standings(namespace_id, self.rows, self._engine.parts.vigilance, learns=learns)

    def mask(self, state: NamespaceState, found: Recalled, asker: str | None, episode_id: str | None) -> Masked | None:
        """Hold back cases of actors in quarantine and, in an episode, of actors whose record asks for it.

        A search takes no account of records, since nothing can be learned from it.
        """
        if not found.authors:
            return None
        standings = standings_of(state)
        if episode_id is None:
            bad = standings.silenced
            held = np.array([author in bad for author in found.authors], bool)
        else:
            held = standings.held(found.authors, found.candidates.groups, asker, episode_id)
        return Masked(held, lambda place: standings.why(str(found.authors[place]))) if held.any() else None

    def screened(self, state: NamespaceState) -> None:
        """Quarantine the actors whose record has become bad beyond doubt, with an entry in the audit log.

        If a person has decided about an actor meanwhile, in any process, that decision stands.
        """
        convicts, action = standings_of(state).convicts(), NewAction(kind="quarantine", note=RECORD)
        for actor in convicts:
            self.rows.quarantine(state.namespace_id, actor, action, unless_decided=True)
        if convicts:
            self._engine.follow()

    def alarms(self, namespace: str | None = None) -> tuple[str, ...]:
        """Name the actors that a person should look at; only loaded namespaces count."""
        return tuple(
            on_one_line(f"{one.actor!r} in namespace {state.name!r}: {one.why}")
            for state in self._engine.loaded()
            if namespace in (None, state.name)
            for one in standings_of(state).all()
            if one.alarming
        )


def standings_of(state: NamespaceState) -> Standings:
    """Return the standings of the actors of a loaded namespace."""
    assert isinstance(state.screen, Standings), "another capability says whose outcomes teach"
    return state.screen


PART = Judging
