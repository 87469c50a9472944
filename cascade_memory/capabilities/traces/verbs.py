"""``memory.traces``: in which traces of OpenTelemetry, Langfuse and LangSmith the episodes recalled."""

from __future__ import annotations

from dataclasses import dataclass

from cascade_memory.capabilities.traces.lookup import as_written, episodes_in, span_id_of, trace_id_of
from cascade_memory.capabilities.traces.tables import SPAN
from cascade_memory.domain.episode import Episode
from cascade_memory.memory import Capable, explained

_COLUMNS = ("host", "trace_id", "span_id")


@dataclass(frozen=True, slots=True)
class Span:
    """A span or a run in which an episode recalled.

    >>> Span("opentelemetry", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7").span_id
    '00f067aa0ba902b7'
    """

    host: str  # "opentelemetry" (and with it Langfuse) or "langsmith"
    trace_id: str  # as the host writes it: hexadecimal digits, or a UUID
    span_id: str


@explained
class Traces(Capable):
    """In which traces the episodes recalled. A recall notes this by itself; ``memory.reward(trace_id=...)`` uses it.

    The notes go with their episode.
    """

    def episodes(self, trace_id: str, span_id: str | None = None) -> list[Episode]:
        """Return the episodes that recalled in a trace, oldest first; with ``span_id``, only in this span or run of it.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.traces.episodes("4bf92f3577b34da6a3ce929d0e0e4736")
        []
        """
        trace, span = trace_id_of(trace_id), None if span_id is None else span_id_of(span_id)
        with self._reading() as tx:
            found = episodes_in(tx, self._namespace_id(), trace, span)
        known = (self._episode(one.id) for one in found)
        return [one for one in known if one is not None]

    def of(self, episode_id: str) -> list[Span]:
        """Return the spans and runs in which an episode recalled, oldest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.traces.of(memory.recall("cool some mug").episode_id)
        []
        """
        query = "SELECT host, trace_id, span_id FROM span WHERE episode = ? ORDER BY key"
        with self._reading() as tx:
            found = tx.execute(query, (self._key_of_episode(tx, episode_id),)).fetchall()
        return [
            Span(row["host"], as_written(row["trace_id"], row["host"]), as_written(row["span_id"], row["host"]))
            for row in self._fitting(SPAN, found, _COLUMNS)
        ]
