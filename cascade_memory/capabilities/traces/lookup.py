"""Finds the episodes of a trace."""

from __future__ import annotations

from typing import NamedTuple

from cascade_memory.errors import InvalidInput, UnknownEpisode
from cascade_memory.ledger import Connection

_FOUND = """SELECT episode.id, episode.status, span.span_id FROM span JOIN episode ON episode.key = span.episode
              WHERE span.namespace = ? AND span.trace_id = ? ORDER BY episode.key, span.key"""
_NAMED = 5  # episodes in a message
_DEAD = ("censored", "expired")  # no reward can reach such an episode any more


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
