"""Reads in which span or run a recall is made, and finds the episode of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from cascade_memory.capabilities.traces.lookup import span_id_of, the_episode, trace_id_of
from cascade_memory.capabilities.traces.tables import SPAN
from cascade_memory.domain.records import Beside
from cascade_memory.engine.part import EnginePart, Host
from cascade_memory.engine.parts import Parts


class HasParts(Protocol):
    """The part of an engine that is needed."""

    parts: Parts


class Noting(EnginePart):
    """Notes the ids of what surrounds a recall. Langfuse's traces are OpenTelemetry's, with the same ids."""

    hosts = (
        Host("opentelemetry", "opentelemetry.trace", "get_current_span", nothing="INVALID_SPAN"),
        Host("langsmith", "langsmith.run_helpers", "get_current_run_tree"),
    )

    def __init__(self, engine: HasParts) -> None:
        self._engine = engine

    def beside(self, host: Host, around: Any) -> Iterable[Beside]:
        """Return the row of a span or a run; none for a span whose ids are not valid."""
        if host.name == "langsmith":
            return (_row(host, str(around.trace_id), str(around.id)),)
        now = around.get_span_context()
        return (_row(host, f"{now.trace_id:032x}", f"{now.span_id:016x}"),) if now.is_valid else ()

    def episode_of(self, namespace: int, trace_id: object, span_id: object) -> str:
        """Return the id of the episode that a verdict on a trace, or on a span of it, is about."""
        trace, span = trace_id_of(trace_id), None if span_id is None else span_id_of(span_id)
        with self._engine.parts.ledger.connections.read() as tx:
            return the_episode(tx, namespace, trace, span)


def _row(host: Host, trace_id: str, span_id: str) -> Beside:
    return SPAN.name, {"host": host.name, "trace_id": trace_id_of(trace_id), "span_id": span_id_of(span_id)}


PART = Noting
