"""The table of spans."""

from __future__ import annotations

from cascade_memory.capabilities.traces.lookup import is_span_id, is_trace_id
from cascade_memory.ledger import INTEGER, TEXT, Column, Index, Table, one_of, rules, whole

SPAN = Table(
    "span",
    (
        Column("key", INTEGER, whole(1), key=True, counts=True),
        Column("episode", INTEGER, whole(1), of=("episode",), refers="episode(key)"),
        Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",)),
        Column("host", TEXT, one_of("opentelemetry", "langsmith"), about="who keeps the trace"),
        Column("trace_id", TEXT, is_trace_id),
        Column("span_id", TEXT, is_span_id, about="of a span (16 digits) or a run (32)"),
    ),
    unique=("episode, host, trace_id, span_id",),
    indexes=(Index("trace", "namespace, trace_id"),),
    about="in which spans or runs the recalls of an episode were made",
    nested="spans",
)
TABLES = (SPAN,)
