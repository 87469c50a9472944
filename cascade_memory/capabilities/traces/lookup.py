"""Finds the episodes of a trace, by ids that are written in one way, however a host, a page or a program writes them."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import InvalidInput, UnknownEpisode
from cascade_memory.ledger import Connection

_TRACE, _SPAN = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOUND = """SELECT episode.id, episode.status, span.span_id FROM span JOIN episode ON episode.key = span.episode
              WHERE span.namespace = ? AND span.trace_id = ? ORDER BY episode.key, span.key"""
_NAMED = 5  # episodes in a message
_DEAD = ("censored", "expired")  # no reward can reach such an episode any more


def trace_id_of(value: object) -> str:
    """Return the id of a trace as it is stored: 32 digits in lower case.

    >>> trace_id_of("4BF92F35-77B3-4DA6-A3CE-929D0E0E4736")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    return _plain(value, "trace_id", _TRACE, "32 hexadecimal digits (OpenTelemetry, Langfuse) or a UUID (LangSmith)")


def span_id_of(value: object) -> str:
    """Return the id of a span or a run as it is stored: 16 digits for a span, 32 for a run.

    >>> span_id_of("00F067AA0BA902B7"), len(span_id_of("4bf92f35-77b3-4da6-a3ce-929d0e0e4736"))
    ('00f067aa0ba902b7', 32)
    """
    return _plain(value, "span_id", _SPAN, "16 hexadecimal digits (OpenTelemetry, Langfuse) or a UUID (LangSmith)")


def _plain(value: object, name: str, form: re.Pattern[str], wanted: str) -> str:
    if isinstance(value, int):
        raise InvalidInput(f"{name} must be a text: opentelemetry.trace.format_{name} makes one of OpenTelemetry's number")
    given = check_id(value, name).strip().lower()
    plain = given.replace("-", "") if _UUID.fullmatch(given) else given
    if not form.fullmatch(plain):
        raise InvalidInput(f"{name} must be {wanted}, not {quoted(value)}")
    return plain


def is_trace_id(value: object, name: str) -> None:
    """Reject a stored value that ``trace_id_of`` would not have returned."""
    if not isinstance(value, str) or not _TRACE.fullmatch(value):
        raise InvalidInput(f"{name} must be 32 hexadecimal digits, not {quoted(value)}")


def is_span_id(value: object, name: str) -> None:
    """Reject a stored value that ``span_id_of`` would not have returned."""
    if not isinstance(value, str) or not _SPAN.fullmatch(value):
        raise InvalidInput(f"{name} must be 16 or 32 hexadecimal digits, not {quoted(value)}")


def as_written(plain: str, host: str) -> str:
    """Return a stored id as its host writes it.

    >>> as_written("4bf92f3577b34da6a3ce929d0e0e4736", "langsmith")
    '4bf92f35-77b3-4da6-a3ce-929d0e0e4736'
    """
    return str(UUID(plain)) if host == "langsmith" and len(plain) == 32 else plain


class Traced(NamedTuple):
    """An episode of a trace."""

    id: str
    status: str
    spans: frozenset[str]  # in which it recalled


def episodes_in(tx: Connection, namespace: int, trace: str, span: str | None = None) -> list[Traced]:
    """Return the episodes of a trace, or of one span of it, oldest first."""
    found: dict[str, tuple[str, set[str]]] = {}
    for one, status, its in tx.execute(_FOUND, (namespace, trace)).fetchall():
        found.setdefault(str(one), (str(status), set()))[1].add(str(its))
    return [Traced(one, status, frozenset(spans)) for one, (status, spans) in found.items() if span is None or span in spans]


def the_episode(tx: Connection, namespace: int, trace: str, span: str | None) -> str:
    """Return the id of the episode that a verdict on a trace, or on a span of it, is about; raise if that is not one episode.

    If the trace has one episode, a verdict on any of its spans is about that. Episodes that can take no reward do not count,
    unless there are no others.
    """
    found = episodes_in(tx, namespace, trace)
    if not found:
        raise UnknownEpisode(f"no episode of this namespace has recalled in the trace {trace}")
    found = [one for one in found if one.status not in _DEAD] or found
    if len(found) > 1 and span is not None:
        exact = [one for one in found if span in one.spans]
        found = exact or found
    if len(found) == 1:
        return found[0].id
    named = ", ".join(f"{one.id!r} (span_id {min(one.spans)})" for one in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    asked = "" if span is None else f", and not one of them alone has recalled in the span {span}"
    tells_apart = len(frozenset[str]().union(*(one.spans for one in found))) > 1
    how = "the span_id= in which one of them has recalled, or its episode_id" if tells_apart else "an episode_id"
    raise InvalidInput(f"the trace {trace} has {len(found):,} episodes{asked}: pass {how}: {named}{more}")
