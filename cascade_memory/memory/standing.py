"""Whose cases are shown: what is known of actors, and quarantine and release by hand."""

from __future__ import annotations

from cascade_memory.domain.actions import NewAction, check_known_actor
from cascade_memory.domain.standing import ActorStanding
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.actions import ActionVerbs


class StandingVerbs(ActionVerbs):
    """The verbs that concern the actors who made the cases."""

    def standings(self) -> list[ActorStanding]:
        """Return what is known of each actor whom the host has named lately, the worst first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> for text in ("cool some mug", "cool a mug"):
        ...     recall = memory.acting(actor="ann").recall(text)
        ...     case_id = memory.acting(actor="ann").reward(recall.episode_id, 1.0, solution="use the fridge")
        >>> memory.sync()
        >>> [(one.actor, one.standing, one.why) for one in memory.standings()]
        [('ann', 'new', 'it has no record yet')]
        """
        engine, name = self._caught_up(), self._namespace
        return engine.namespace_state(name).standings.all() if engine.namespace_id(name) else []

    def quarantine(self, actor: str, *, note: str | None = None) -> int:
        """Show no case of an actor any more, and learn from no outcome that it reports; return how many cases that hides.

        What its outcomes have taught is unlearned. The cases are kept, and so are later ones. ``release`` shows them again.
        Pinned cases stay, and so do those that were added with the source "human" (the default of ``add``), or that a person
        has corrected to: for these a person has vouched; ``forget(by_actor=...)`` removes them as well.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.acting(actor="eve").reward(memory.recall("cool some mug").episode_id, 1.0, solution="use the oven")
        >>> memory.acting(actor="ann").quarantine("eve", note="she made this up")
        1
        >>> memory.recall("cool some mug").cases
        ()
        >>> memory.acting(actor="ann").release("eve")
        1
        """
        return self._decide("quarantine", actor, note)

    def release(self, actor: str, *, note: str | None = None) -> int:
        """Show the cases of an actor again, like those of a person, except what a person has hidden; return how many come back.

        From then on no record decides about this actor, until somebody calls ``quarantine``.
        """
        return self._decide("release", actor, note)

    def _decide(self, kind: str, actor: str, note: str | None) -> int:
        engine, name = self._caught_up(), self._new_in()
        record = engine.parts.door.record()
        note = record.take(note=note).note
        action = NewAction(kind=kind, actor=self._who(record), note=note)
        whose = record.name(check_known_actor(actor), "actor")
        if whose is None:
            raise InvalidInput("quarantine and release need the actor whose cases they concern")
        # A decision may come before the first task of a namespace: it must not be lost.
        namespace_id = engine.namespace_state(name).namespace_id
        ledger = engine.parts.ledger.actors
        decide = ledger.quarantine if kind == "quarantine" else ledger.release
        moved = decide(namespace_id, whose, action)
        engine.learn_soon()
        return moved or 0
