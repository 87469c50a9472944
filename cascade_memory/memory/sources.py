"""The verbs that say who wrote what."""

from __future__ import annotations

from cascade_memory.domain.moments import Moment, moment_of
from cascade_memory.domain.provenance import Wanted
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.sources import Diff, Sources
from cascade_memory.memory.browsing import Browsing
from cascade_memory.memory.paging import AT_ONCE


class SourceVerbs(Browsing):
    """They change nothing."""

    def sources(self) -> Sources:
        """Return a row for each actor and channel: its cases, episodes and outcomes, and how its cases did when shown.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ann, bob = memory.acting(actor="ann"), memory.acting(actor="bob", channel="mcp")
        >>> ids = ann.add([("cool some mug", "fridge"), ("heat some egg", "oven")])
        >>> case_id = bob.recall("cool a cup").reward(1.0, solution="freezer")
        >>> [(one.actor, one.channel, one.cases, one.outcomes, one.shown) for one in memory.sources()]
        [('ann', 'python', 2, 0, 1), ('bob', 'mcp', 1, 1, 0)]
        """
        name = self._namespace
        ledger = self._caught_up().parts.ledger
        return Sources(name, ledger.provenance.sources(self._namespace_id()))

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
        >>> memory.diff("1h")
        Diff(1 case came and 0 went in namespace 'default')
        >>> memory.diff("1h").by_source()
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
        """Return how many cases were forgotten since, according to the audit log."""
        actions, total = self._open().parts.ledger.actions, 0
        after: int | None = None
        while page := actions.page(namespace_id, AT_ONCE, after=after, newest_first=True):
            for _, entry in page:
                if entry.at < since:
                    return total
                total += entry.counts.get("cases", 0) if entry.action == "forget" else 0
            after = page[-1][0]
        return total
