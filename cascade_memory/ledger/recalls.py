"""The part of the ledger that stores recalls and opens their episodes, and reads recalls as lessons for policies."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import CASE_REMOVED, FORGOTTEN, PURGED, Column, Opinion, RecallRecord
from cascade_memory.errors import EpisodeClosed, UnknownEpisode
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.connections import Connections
from cascade_memory.ledger.filters import EPISODES, keep_fields
from cascade_memory.ledger.rows import (
    float_arrays,
    float_blobs,
    int_arrays,
    int_blobs,
    metadata_if_readable,
    pack_floats,
    pack_metadata,
    picked,
    unpack_floats,
    usable,
)
from cascade_memory.ports.policy import Feedback, Slate

SEARCHES_KEPT = 2_048  # per folder


class Recalling:
    """The methods of the ledger that record recalls."""

    connections: Connections

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall, and open its episode if that is new; raise if data in it was forgotten after this log line."""
        with self.connections.write(durable=False, brings_vectors=True) as connection:
            if unless_forgotten_since is not None and _forgotten(connection, entry, unless_forgotten_since):
                raise UnknownEpisode(
                    "data was forgotten while this recall waited to be stored, and it may be part of the recall; recall again"
                )
            episode, first_query = _episode(connection, entry) if entry.episode_id is not None else (None, None)
            query = None if first_query == entry.query else entry.query
            key = connection.execute(
                """INSERT INTO recall (id, episode, namespace, query, kind, k, at, policy, policy_version, encoder, shown,
                     baseline, candidates, groups, chosen, numbers, features, context, shadow, shadow_numbers, shadow_context)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
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
            ).lastrowid
            assert key is not None
            if episode is None:
                _drop_old_searches(connection)
            return key


def _forgotten(connection: sqlite3.Connection, entry: RecallRecord, since: int) -> bool:
    """Tell whether data forgotten since may be part of this recall: its metadata, its episode, a candidate, or everything."""
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


def _drop_old_searches(connection: sqlite3.Connection) -> None:
    """Keep only the newest searches: nothing is ever learned from searches."""
    oldest = "SELECT key FROM recall WHERE episode IS NULL ORDER BY key DESC LIMIT 1 OFFSET ?"
    connection.execute(f"DELETE FROM recall WHERE episode IS NULL AND key <= ({oldest})", (SEARCHES_KEPT,))


def _episode(connection: sqlite3.Connection, entry: RecallRecord) -> tuple[int, str]:
    """Return the key and the query of the recall's episode; open the episode if it is new."""
    opened = connection.execute(
        """INSERT INTO episode (id, namespace, query, thread, arm, holdout, status, opened_at)
           VALUES (?, ?, ?, ?, ?, ?, 'open', ?) ON CONFLICT DO NOTHING RETURNING key""",
        (entry.episode_id, entry.namespace, entry.query, entry.thread, entry.arm, entry.holdout, entry.at),
    ).fetchone()
    if opened is not None:
        key = int(opened[0])
        connection.execute("INSERT OR REPLACE INTO episode_vector VALUES (?, ?)", (key, pack_floats(entry.vector)))
        keep_metadata(connection, entry.namespace, key, entry.metadata)
        return key, entry.query
    row = connection.execute("SELECT key, query, namespace, status FROM episode WHERE id = ?", (entry.episode_id,)).fetchone()
    key, query, namespace, status = row
    if namespace != entry.namespace:
        raise UnknownEpisode(f"episode {entry.episode_id!r} belongs to another namespace")
    if status != "open":
        raise EpisodeClosed(f"episode {entry.episode_id!r} is {status}; open another one to recall again")
    keep_metadata(connection, entry.namespace, key, entry.metadata)
    return key, query


def keep_metadata(connection: sqlite3.Connection, namespace: int, episode: int, metadata: Mapping[str, Any]) -> None:
    """Store metadata of an episode; earlier values stay unless a new value replaces them."""
    if metadata:
        both = {**metadata_of(connection, episode), **metadata}
        connection.execute("UPDATE episode SET metadata = ? WHERE key = ?", (pack_metadata(both), episode))
        keep_fields(connection, EPISODES, namespace, episode, metadata)


def metadata_of(connection: sqlite3.Connection, episode: int) -> Mapping[str, Any]:
    """Return the metadata that an episode's recalls were given."""
    (packed,) = connection.execute("SELECT metadata FROM episode WHERE key = ?", (episode,)).fetchone()
    return metadata_if_readable(packed) if packed else {}


# The vector of a recall's query, if that is also its episode's query.
_VECTOR = "(SELECT vector FROM episode_vector WHERE episode_vector.key = recall.episode AND recall.query IS NULL)"
_ROW = "recall.key, candidates, groups, chosen, numbers, {features}, {context}, shown, agreement, {vector}, {encoder}"
FEEDBACK_COLUMNS = _ROW.format(features="features", context="context", vector=_VECTOR, encoder="encoder")
SHADOW_COLUMNS = _ROW.format(features="shadow_numbers", context="shadow_context", vector=_VECTOR, encoder="''")
_OPINION = 2  # columns of shadow_numbers before the features


def feedback(row: Sequence[Any], reward: float, weight: float) -> Feedback:
    """Build a policy's lesson from a row of ``FEEDBACK_COLUMNS``."""
    key, candidates, groups, chosen, numbers, features, context, shown, agreement, query, encoder = row
    n = len(candidates) // 8
    of_solutions, places = int_arrays(groups, chosen)
    labels = agreement if agreement is not None and len(agreement) == 4 * n else None
    of_pairs, table, of_choice, vector, agreed = float_arrays(features, numbers, context, query or b"", labels or b"")
    similarity = table.reshape(-1, NUMBERS)[:, Column.SIMILARITY] if n else np.zeros(0, np.float32)
    if not len(similarity) == len(of_solutions) == n or (len(places) and not 0 <= places.min() <= places.max() < n):
        raise ValueError(f"the arrays of recall {key} do not belong together")
    return Feedback(
        key=key,
        slate=Slate(
            features=of_pairs.reshape(n, len(of_pairs) // n if n else 0),
            similarity=similarity,
            groups=of_solutions,
            query=vector if query else None,
        ),
        chosen=places,
        context=of_choice,
        shown=bool(shown),
        reward=reward,
        agreement=None if labels is None else agreed,
        weight=weight,
        encoder=encoder if isinstance(encoder, str) else "",  # somebody may have edited this row
    )


def shadow_feedback(row: Sequence[Any], reward: float, weight: float) -> Feedback:
    """Build the shadow's lesson from a row of ``SHADOW_COLUMNS``: what was shown, with the features of its own encoder."""
    n = len(row[1]) // 8
    numbers = unpack_floats(row[5]).reshape(n, -1) if n else np.zeros((0, _OPINION), np.float32)
    return feedback((*row[:5], pack_floats(numbers[:, _OPINION:]), *row[6:]), reward, weight)


def opinion(numbers: bytes, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return (places, propensity) of what a shadow would have shown, for n candidates."""
    table = unpack_floats(numbers).reshape(n, -1) if n else np.zeros((0, _OPINION), np.float32)
    return table[:, 0], table[:, 1]


def shown_cases(connection: sqlite3.Connection, episode: int) -> list[int]:
    """Return the keys of the cases that an episode was shown, in order, without duplicates."""
    keys: dict[int, None] = {}
    rows = connection.execute("SELECT candidates, chosen FROM recall WHERE episode = ? AND shown = 1 ORDER BY key", (episode,))
    for shown in usable(rows, picked):
        for key in shown.tolist():
            keys[key] = None
    return list(keys)


def count_use(connection: sqlite3.Connection, episode: int, value: float, *, sign: int) -> None:
    """Count an outcome for the cases that its episode was shown; ``sign=-1`` undoes this."""
    for key in shown_cases(connection, episode):
        connection.execute(
            "UPDATE cases SET shown = max(0, shown + ?), succeeded = max(0.0, succeeded + ?) WHERE key = ?",
            (sign, sign * value, key),
        )
