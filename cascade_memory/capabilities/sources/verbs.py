"""``memory.sources``: who wrote what, what is known of them, and quarantine."""

from __future__ import annotations

from cascade_memory.capabilities.sources.actor_standing import ActorStanding
from cascade_memory.capabilities.sources.engine_part import standings_of
from cascade_memory.capabilities.sources.rows import ActorRows
from cascade_memory.domain.actions import NewAction, check_known_actor
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.validation import Moment, moment_of
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.sources import Diff
from cascade_memory.insight.sources import Sources as SourceRows
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.rows import AT_ONCE


@explained
class Sources(Bound):
    """The actors and channels that wrote what the memory holds, and quarantine."""

    def all(self) -> SourceRows:
        """Return a row for each actor and channel: its cases, episodes and outcomes, and how its cases did when shown.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ann, bob = memory.acting(actor="ann"), memory.acting(actor="bob", channel="mcp")
        >>> ids = ann.add([("cool some mug", "fridge"), ("heat some egg", "oven")])
        >>> case_id = bob.recall("cool a cup").reward(1.0, solution="freezer")
        >>> [(one.actor, one.channel, one.cases, one.outcomes, one.shown) for one in memory.sources.all()]
        [('ann', 'python', 2, 0, 1), ('bob', 'mcp', 1, 1, 0)]
        """
        name = self._namespace
        ledger = self._caught_up().parts.ledger
        return SourceRows(name, ledger.provenance.sources(self._namespace_id()))

    def diff(
        self,
        since: Moment,
        *,
        by_actor: str | None = None,
        by_channel: str | None = None,
    ) -> Diff:
        """Return the cases that came and went since a moment, with who made them.

        Args:
            since: Seconds since 1970, a ``datetime``, a ``timedelta`` (so long ago), or a text such as "2026-11-24" or "7d".
            by_actor: Only cases that this actor made first.
            by_channel: Only cases that came through this channel first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.acting(actor="ann").add("cool some mug", "fridge")
        >>> memory.sources.diff("1h")
        Diff(1 case came and 0 went in namespace 'default')
        >>> memory.sources.diff("1h").by_source()
        {('ann', 'python'): (1, 0)}
        """
        start = moment_of(since, "since")
        if start is None:
            raise InvalidInput("diff needs since=, a moment")
        name, wanted = self._namespace, Wanted.of(by_actor, by_channel, start)
        ledger, number = self._open().parts.ledger, self._namespace_id()
        came, went = ledger.provenance.came(number, wanted), ledger.provenance.went(number, wanted)
        forgotten = 0 if by_actor is not None or by_channel is not None else self._forgotten(number, start)
        return Diff(namespace=name, since=start, came=tuple(came), went=tuple(went), forgotten=forgotten)

    def _forgotten(self, namespace_id: int, since: float) -> int:
        """Return how many cases were forgotten since a moment, according to the audit log."""
        actions, total = self._open().parts.ledger.actions, 0
        after: int | None = None
        while page := actions.page(namespace_id, AT_ONCE, after=after, newest_first=True):
            for _, entry in page:
                if entry.at < since:
                    return total
                total += entry.counts.get("cases", 0) if entry.action == "forget" else 0
            after = page[-1][0]
        return total

    # -- quarantine ------------------------------------------------------------------------------------------------------

    def standings(self) -> list[ActorStanding]:
        """Return what is known of each actor whom the host has named lately, the worst first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> for text in ("cool some mug", "cool a mug"):
        ...     recall = memory.acting(actor="ann").recall(text)
        ...     case_id = memory.acting(actor="ann").reward(recall.episode_id, 1.0, solution="use the fridge")
        >>> memory.sync()
        >>> [(one.actor, one.standing, one.why) for one in memory.sources.standings()]
        [('ann', 'new', 'it has no record yet')]
        """
        engine, name = self._caught_up(), self._namespace
        return standings_of(engine.namespace_state(name)).all() if engine.namespace_id(name) else []

    def quarantine(self, actor: str, *, note: str | None = None) -> int:
        """Show no case of an actor any more, and learn from no outcome that it reports; return how many cases that hides.

        What was learned from its outcomes is unlearned. Its cases, also later ones, are kept but not shown; ``release`` shows
        them again. Three kinds of cases are still shown, because a person has vouched for them: pinned cases, those added with
        the source "human" (the default of ``add``), and those that a person has corrected to. ``forget(by_actor=...)`` removes
        these as well.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.acting(actor="eve").reward(memory.recall("cool some mug").episode_id, 1.0, solution="use the oven")
        >>> memory.acting(actor="ann").sources.quarantine("eve", note="she made this up")
        1
        >>> memory.recall("cool some mug").cases
        ()
        >>> memory.acting(actor="ann").sources.release("eve")
        1
        """
        return self._decide("quarantine", actor, note)

    def release(self, actor: str, *, note: str | None = None) -> int:
        """Show the cases of an actor again, except those that a person has hidden; return how many cases are shown again.

        The cases are shown like those of a person. From then on, the record of this actor decides nothing any more, until
        somebody calls ``quarantine``.
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
        rows = ActorRows(engine.parts.ledger.connections)
        decide = rows.quarantine if kind == "quarantine" else rows.release
        moved = decide(namespace_id, whose, action)
        engine.learn_soon()
        return moved or 0
