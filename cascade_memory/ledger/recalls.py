"""The part of the ledger that stores recalls, opens their episodes, and counts the use of the cases that were shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascade_memory.domain.episode import id_taken
from cascade_memory.domain.metadata import check_amount
from cascade_memory.domain.records import CASE_REMOVED, FORGOTTEN, PURGED, Opinion, RecallRecord
from cascade_memory.domain.validation import GREATEST
from cascade_memory.errors import EpisodeClosed, UnknownEpisode
from cascade_memory.ledger import numbering
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.filters import EPISODES, keep_fields
from cascade_memory.ledger.rows import (
    KEYS,
    SET_VECTOR,
    executed_for,
    float_blobs,
    int_blobs,
    metadata_if_readable,
    pack_floats,
    pack_metadata,
    picked,
    usable,
)

SEARCHES_KEPT = 2_048  # per folder


class Recalling:
    """The methods of the ledger that record recalls."""

    connections: Database

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall, and open its episode if the episode is new; return the recall's key.

        Raises ``UnknownEpisode`` if the episode belongs to another namespace, or if data that the recall may contain was
        forgotten after the log line ``unless_forgotten_since``; ``EpisodeClosed`` if the episode takes no more recalls.
        """
        with self.connections.write(durable=False, brings_vectors=True) as connection:
            if unless_forgotten_since is not None and _forgotten(connection, entry, unless_forgotten_since):
                raise UnknownEpisode(
                    "data was forgotten while this recall waited to be stored, and it may be part of the recall; recall again"
                )
            key = recorded(connection, entry)
        return int(key)  # not before the commit, which a server can then answer in the same round trip


def recorded(connection: Connection, entry: RecallRecord) -> Any:
    """Store a recall within a transaction; return its key."""
    if entry.episode_id is None:
        numbering.check(connection, entry.namespace)
        episode = first_query = None
    else:
        episode, first_query = _episode(connection, entry)
    for table, row in entry.beside if episode is not None else ():
        values = {**row, "episode": episode, "namespace": entry.namespace}
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING", list(values.values()))
    query = None if first_query == entry.query else entry.query
    (key,) = connection.execute(
        """INSERT INTO recall (id, episode, namespace, query, kind, k, at, policy, policy_version, encoder, shown,
             baseline, candidates, groups, chosen, numbers, features, context, shadow, shadow_numbers, shadow_context)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key""",
        (
            entry.id,
            episode,
            entry.namespace,
            query,
            entry.kind,
            entry.k,
            entry.at,
            entry.policy,
            entry.policy_version,
            entry.encoder,
            int(entry.shown),
            None if np.isnan(entry.baseline) else entry.baseline,
            *int_blobs(entry.candidates, entry.groups, entry.chosen),
            *float_blobs(entry.numbers, entry.features, entry.context),
            *_packed(entry.shadow),
        ),
    ).fetchone()
    if episode is None:
        _drop_old_searches(connection)
    return key


def _forgotten(connection: Connection, entry: RecallRecord, since: int) -> bool:
    """Tell whether data that was forgotten after the log line ``since`` may be part of this recall.

    That is its metadata, its episode, a candidate, or everything.
    """
    query = "SELECT kind, ref FROM change WHERE seq > ? AND namespace = ? AND kind IN (?, ?, ?)"
    lines = connection.execute(query, (since, entry.namespace, CASE_REMOVED, FORGOTTEN, PURGED)).fetchall()
    candidates = set(entry.candidates.tolist()) if lines else set[int]()
    named = bool(entry.metadata) or not entry.opens_episode
    return any(ref in candidates if kind == CASE_REMOVED else named or (kind == FORGOTTEN and not ref) for kind, ref in lines)


def _packed(shadow: Opinion | None) -> tuple[str | None, bytes | None, bytes | None]:
    if shadow is None:
        return None, None, None
    numbers = np.column_stack([shadow.places, shadow.propensity, shadow.features]) if len(shadow.places) else shadow.places
    return shadow.policy, pack_floats(numbers), pack_floats(shadow.context)


def _drop_old_searches(connection: Connection) -> None:
    """Keep only the newest searches: nothing is ever learned from searches."""
    oldest = "SELECT key FROM recall WHERE episode IS NULL ORDER BY key DESC LIMIT 1 OFFSET ?"
    connection.execute(f"DELETE FROM recall WHERE episode IS NULL AND key <= ({oldest})", (SEARCHES_KEPT,))


def _episode(connection: Connection, entry: RecallRecord) -> tuple[int, str]:
    """Return the key and the query of the recall's episode; open the episode if it is new."""
    # Nobody else knows the id of an episode that this recall opens. Any other one may be there already.
    known = "" if entry.opens_episode else "ON CONFLICT DO NOTHING"
    values = (entry.episode_id, entry.namespace, entry.query, entry.thread, entry.arm, entry.holdout, entry.at)
    try:
        opened = connection.execute(
            f"""INSERT INTO episode (id, namespace, query, thread, arm, holdout, status, opened_at, actor, channel)
                VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?) {known} RETURNING key""",
            (*values, entry.actor, entry.channel),
        ).fetchone()
    except sqlite3.IntegrityError:  # an episode refers to its namespace, so SQLite has looked for it already
        numbering.check(connection, entry.namespace)
        raise
    if opened is not None:
        (key,) = opened
        connection.execute(SET_VECTOR.format("episode_vector"), (key, pack_floats(entry.vector)))
        keep_metadata(connection, entry.namespace, key, entry.metadata, new=True)
        return key, entry.query
    row = connection.execute("SELECT key, query, namespace, status FROM episode WHERE id = ?", (entry.episode_id,)).fetchone()
    key, query, namespace, status = row
    if namespace != entry.namespace:
        raise id_taken(str(entry.episode_id))
    if status != "open":
        raise EpisodeClosed(f"episode {entry.episode_id!r} is {status}; open another one to recall again")
    if entry.metadata and {**(earlier := metadata_of(connection, key)), **entry.metadata} != earlier:
        check_amount({**earlier, **entry.metadata}, "the metadata of all recalls of this episode together")
        keep_metadata(connection, entry.namespace, key, entry.metadata)
    return key, query


def keep_metadata(
    connection: Connection, namespace: int, episode: int, metadata: Mapping[str, Any], *, new: bool = False
) -> None:
    """Store metadata of an episode; earlier values stay unless a new value replaces them. A ``new`` episode has none."""
    if metadata:
        both = {**({} if new else metadata_of(connection, episode)), **metadata}
        connection.execute("UPDATE episode SET metadata = ? WHERE key = ?", (pack_metadata(both), episode))
        keep_fields(connection, EPISODES, namespace, episode, metadata)


def metadata_of(connection: Connection, episode: int) -> Mapping[str, Any]:
    """Return the metadata that an episode's recalls were given."""
    (packed,) = connection.execute("SELECT metadata FROM episode WHERE key = ?", (episode,)).fetchone()
    return metadata_if_readable(packed) if packed else {}


def shown_to(connection: Connection, episode: int) -> Sequence[Any]:
    """Return (candidates, chosen) of each recall that showed cases in an episode.

    Both are packed: the keys of its candidates, and the positions among them of those that were shown.
    """
    return connection.execute(
        "SELECT candidates, chosen FROM recall WHERE episode = ? AND shown = 1 ORDER BY key", (episode,)
    ).fetchall()


def shown_cases(connection: Connection, episode: int) -> list[int]:
    """Return the keys of the cases that an episode was shown."""
    return keys_shown(shown_to(connection, episode))


def keys_shown(rows: Sequence[Any]) -> list[int]:
    """Return the keys of the shown cases, in order, without duplicates; ``rows`` are what ``shown_to`` returns."""
    keys: dict[int, None] = {}
    for shown in usable(rows, picked):
        for key in shown.tolist():
            keys[key] = None
    return list(keys)


def count_use(connection: Connection, shown: Sequence[Any], value: float, *, sign: int, unkept: str | None = None) -> list[int]:
    """Count an outcome for the cases that its episode was shown, and return their keys; ``sign=-1`` undoes this.

    An outcome beyond a cap of its actor is not counted, because these counts decide which cases make room for others.
    """
    keys = keys_shown(shown)
    if unkept != "capped":
        executed_for(
            connection,
            f"""UPDATE cases SET shown = CASE WHEN shown + ? <= 0 THEN 0 WHEN shown >= {GREATEST} THEN shown ELSE shown + ? END,
                 succeeded = CASE WHEN succeeded + ? > 0 THEN succeeded + ? ELSE 0.0 END WHERE key IN ({KEYS})""",
            keys,
            (sign, sign, sign * value, sign * value),
        )
    return keys
