"""The verifications of a case: the outcomes that ended in it, and its additions by hand. Each has its own metadata.

A case shows the source and the metadata of its oldest verification.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cascade_memory.domain.records import RETOLD
from cascade_memory.domain.trajectory import gist
from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger import cases, room
from cascade_memory.ledger.case_states import follow, trust_of
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.filters import CASES, OUTCOMES, keep_fields, kept_fields
from cascade_memory.ledger.recalls import shown_cases
from cascade_memory.ledger.rows import note, pack_metadata, solution_of

_OUTCOMES = "FROM outcome WHERE cases_key = ? AND withdrawn_at IS NULL"
_ADDITIONS = "FROM addition WHERE cases_key = ?"


class _First(NamedTuple):
    """The oldest verification that a case still has; ``solution`` is None if it is worded like the case's solution."""

    at: float
    source: str
    episode: int | None
    metadata: dict[str, Any]
    solution: str | None
    actor: str | None
    channel: str | None


def verified_by(connection: Connection, key: int) -> tuple[set[int], set[int]]:
    """Return the keys of the episodes and of the additions that verify a case."""
    episodes = connection.execute(f"SELECT episode {_OUTCOMES}", (key,)).fetchall()
    additions = connection.execute(f"SELECT key {_ADDITIONS}", (key,)).fetchall()
    return {row[0] for row in episodes}, {row[0] for row in additions}


def reconsider(connection: Connection, key: int) -> int:
    """Count the verifications of a case again after one was removed; return 1 if none is left and the case was deleted.

    If the removed verification was the one that the case shows, the case then shows the oldest one that is left.
    """
    query = "SELECT episode, created_at, metadata, trust, source FROM cases JOIN case_text USING (key) WHERE key = ?"
    case = connection.execute(query, (key,)).fetchone()
    if case is None:
        return (
            _reconsider_aside(connection, key) if any(verified_by(connection, key)) else cases.delete_expired(connection, key)
        )
    outcomes, last_outcome = connection.execute(f"SELECT count(*), max(at) {_OUTCOMES}", (key,)).fetchone()
    additions, last_addition = connection.execute(f"SELECT count(*), max(at) {_ADDITIONS}", (key,)).fetchone()
    if not outcomes + additions:
        cases.delete(connection, key)
        return 1
    last = max(last_outcome or 0.0, last_addition or 0.0)
    values = (outcomes + additions, last, _trust_left(connection, key, case[3]), key)
    connection.execute("UPDATE cases SET copies = ?, verified_at = ?, trust = ? WHERE key = ?", values)
    first = _first(connection, key)
    said = (first.source, first.metadata) == (case[4], json.loads(case[2]))
    by_episode = first.episode is not None and first.episode == case[0] and said
    by_hand = first.episode is None and case[0] is None and first.at == case[1] and said
    if not (by_episode or by_hand):
        _show_as(connection, key, first)
    follow(connection, key)  # it may be somebody else's now, or no person vouches for it any more
    return 0


def _trust_left(connection: Connection, key: int, most: int) -> int:
    """Return the trust of the most trusted verification that a case still has, but no more than ``most``."""
    additions = connection.execute("SELECT DISTINCT source FROM addition WHERE cases_key = ?", (key,)).fetchall()
    best = max((_level(source) for (source,) in additions), default=0)
    outcomes = connection.execute(f"SELECT source, episode, key {_OUTCOMES} ORDER BY key", (key,)).fetchall()
    for source, episode, outcome in sorted(outcomes, key=lambda one: -_level(one[0])):
        if best >= min(most, _level(source)):
            break
        shown = () if is_correction(connection, episode, outcome) else shown_cases(connection, episode)
        trust, values = trust_of(_level(source), shown)
        best = max(best, int(connection.execute(f"SELECT {trust}", values).fetchone()[0]))
    return min(best, most)


def is_correction(connection: Connection, episode: int, outcome: int | None) -> bool:
    """Tell whether an outcome is a person's correction; if so, no case that was shown has led to its solution."""
    query = (
        """SELECT 1 FROM action WHERE subject = (SELECT id FROM episode WHERE key = ?) AND outcome = ? AND kind = 'correct'"""
    )
    return connection.execute(query, (episode, outcome)).fetchone() is not None


def _level(source: object) -> int:
    return LEVELS.get(str(source), 0)  # an edited row may hold anything


def _reconsider_aside(connection: Connection, key: int) -> int:
    """Do what ``reconsider`` does, with a case that is set aside."""
    if connection.execute("SELECT 1 FROM expired WHERE key = ?", (key,)).fetchone() is not None:
        why, at, until = room.as_case(connection, key)
        reconsider(connection, key)
        room.put_aside(connection, [key], why, at, until)
        room.take_away(connection, [key], None)
    return 0


def _first(connection: Connection, key: int) -> _First:
    outcome = connection.execute(
        f"""SELECT at, source, episode, solution, key, (SELECT coalesce(episode.actor, outcome.actor) FROM episode
              WHERE episode.key = outcome.episode), (SELECT CASE WHEN episode.actor IS NULL THEN outcome.channel
              ELSE episode.channel END FROM episode WHERE episode.key = outcome.episode), actor, channel
            {_OUTCOMES} ORDER BY at, key LIMIT 1""",
        (key,),
    ).fetchone()
    addition = connection.execute(
        f"SELECT at, source, NULL, metadata, solution, actor, channel {_ADDITIONS} ORDER BY at, key LIMIT 1", (key,)
    ).fetchone()
    if outcome is None or (addition is not None and addition[0] <= outcome[0]):
        at, source, episode, metadata, solution, actor, channel = addition
        return _First(at, source, episode, json.loads(metadata), solution, actor, channel)
    at, source, episode, solution, number, actor, channel, *by = outcome
    if is_correction(connection, episode, number):  # it belongs to the person who wrote it, not to whoever asked
        actor, channel = by
    return _First(at, source, episode, metadata_of_outcome(connection, number), solution, actor, channel)


def metadata_of_outcome(connection: Connection, outcome: int) -> dict[str, Any]:
    """Return the metadata of an outcome; older versions stored them only as one row per value."""
    (packed,) = connection.execute("SELECT metadata FROM outcome WHERE key = ?", (outcome,)).fetchone()
    return kept_fields(connection, OUTCOMES, outcome) if packed is None else json.loads(packed)


def _show_as(connection: Connection, key: int, first: _First) -> None:
    """Give a case the source, wording and metadata of the verification ``first``; nothing of the previous one stays."""
    namespace, case_id, kind, text = connection.execute(
        "SELECT namespace, id, solution_kind, case_text.solution FROM cases JOIN case_text USING (key) WHERE key = ?",
        (key,),
    ).fetchone()
    if first.solution is not None and first.solution != text:
        # An addition without its own wording used the present one, which is about to be replaced.
        connection.execute("UPDATE addition SET solution = ? WHERE cases_key = ? AND solution IS NULL", (text, key))
        text = first.solution
        for one in HEARING:
            one.on_case_gone(connection, [key], "worded differently")
    connection.execute(
        "UPDATE cases SET source = ?, episode = ?, created_at = ?, actor = ?, channel = ?, head = ? WHERE key = ?",
        (
            *(first.source, first.episode, first.at, first.actor, first.channel),
            gist(solution_of(kind, text), cases.HEAD_CHARS),
            key,
        ),
    )
    metadata = pack_metadata(first.metadata)
    connection.execute("UPDATE case_text SET solution = ?, metadata = ? WHERE key = ?", (text, metadata, key))
    connection.execute("DELETE FROM field WHERE cases_key = ?", (key,))
    keep_fields(connection, CASES, namespace, key, first.metadata)
    note(connection, namespace, RETOLD, key, case_id)
