"""Repairs rows that cannot be used, if their lost values can be found or computed again; otherwise removes them."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.digests import pair_key
from cascade_memory.domain.records import CASE_ADDED
from cascade_memory.domain.trajectory import gist
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.ledger import cases, episode_states, numbering, owned, room, rules
from cascade_memory.ledger.audit import Fault, Undecodable, as_stored
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import OBSERVERS
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.filters import CASES as BY_FIELD
from cascade_memory.ledger.filters import keep_fields
from cascade_memory.ledger.forgetting import forget_episode
from cascade_memory.ledger.rows import pack_floats, solution_of
from cascade_memory.ledger.schema import CASES, EPISODE, TABLES

_SET_NAMESPACE = "INSERT INTO namespace (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name"
_NO_OUTCOME = 0  # no row has this key
_COUNTS, _BY_WHOM = ("copies", "shown", "novelty"), ("actor", "channel")
Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]


def summary(done: Mapping[str, int]) -> str:
    """Describe in words what was done.

    >>> summary(Counter({"cases mended": 2, "recall removed": 1}))
    '2 cases mended, 1 recall removed'
    """
    return ", ".join(f"{count:,} {what}" for what, count in sorted(done.items()) if what != "left")


def cured(connection: Connection, fault: Fault, embed: Embed) -> str:
    """Repair one row, or remove it; return what was done."""
    key, cure = fault.key, _CURES.get(fault.table)
    if cure is None:
        for one in OBSERVERS:
            done = one.cured(connection, fault.table, key, lambda text: pack_floats(_vector(connection, None, text, embed)))
            if done is not None:
                return done
        called = next(table.called for table in TABLES if table.name == fault.table)
        owned.delete_with(connection, fault.table, [key])
        connection.execute(f"DELETE FROM {fault.table} WHERE {called} IS ?", (key,))
        return f"{fault.table} removed"
    try:
        return cure(connection, key, embed)
    except LookupError:  # it was removed together with another row
        return "left"


def _case(connection: Connection, key: Any, embed: Embed) -> str:
    """Rebuild a case from its query and its solution; remove it if either is lost."""
    try:
        with as_stored(connection):
            row = _row(connection, "SELECT * FROM cases WHERE key = ?", key)
            text = _row(connection, "SELECT * FROM case_text WHERE key = ?", key)
            vector = _row(connection, "SELECT vector FROM case_vector WHERE key = ?", key)["vector"]
        rules.solution(text["solution_kind"], text["solution"], needed=True)
        solution = solution_of(text["solution_kind"], text["solution"])
        row["namespace"], row["solution"] = _belonging(connection, key, row)
        fixed = {**row, **_counts(row), "head": gist(solution, cases.HEAD_CHARS), "pair": pair_key(row["query"], solution)}
        CASES.check({**fixed, "key": key})
        # If the query is lost, the vector belongs to another text.
        known = None if type(row["query"]) is Undecodable else vector
        good = pack_floats(_vector(connection, known, row["query"], embed))
        assignments = ", ".join(f"{name} = ?" for name in fixed)
        connection.execute(f"UPDATE OR IGNORE cases SET {assignments} WHERE key = ?", [*fixed.values(), key])
        if connection.execute("SELECT pair FROM cases WHERE key = ?", (key,)).fetchone()[0] != fixed["pair"]:
            raise InvalidInput("the same case is stored twice")
        connection.execute("UPDATE case_vector SET vector = ? WHERE key = ?", (good, key))
        _metadata(connection, row["namespace"], key, text["metadata"])
    except (CascadeError, LookupError, TypeError, ValueError, sqlite3.IntegrityError):
        connection.execute("DELETE FROM field WHERE cases_key IS ?", (key,))
        cases.delete(connection, key)
        return "cases removed"
    return "cases mended"


def _row(connection: Connection, query: str, key: Any) -> dict[str, Any]:
    cursor = connection.execute(query, (key,))
    found = cursor.fetchone()
    if found is None:
        raise LookupError(key)
    return dict(zip([column[0] for column in cursor.description], found, strict=True))


def _belonging(connection: Connection, key: int, row: Mapping[str, Any]) -> tuple[int, int]:
    """Return the namespace of a case and the id of its solution; replace them if they do not exist.

    Then the namespace is the one in the log of changes (raise if there is none), and the id is that of a new solution.
    """
    namespace, solution = row["namespace"], row["solution"]
    if connection.execute("SELECT 1 FROM namespace WHERE id IS ?", (namespace,)).fetchone() is None:
        logged = (
            "SELECT change.namespace FROM change JOIN namespace ON namespace.id = change.namespace WHERE ref = ? AND kind = ?"
        )
        found = connection.execute(logged, (key, CASE_ADDED)).fetchone()
        if found is None:
            raise LookupError(namespace)
        namespace = int(found[0])
    if connection.execute("SELECT 1 FROM solution WHERE id IS ?", (solution,)).fetchone() is None:
        solution = cases.solution_id(connection, namespace, uuid.uuid4().hex)
    return namespace, solution


def _counts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return replacements, by column, for those values in the row of a case that are impossible.

    The counts become those of a new case. If it is unclear whether the case was hidden, it becomes hidden.
    """
    fixed: dict[str, Any] = {}
    if not (rules.is_good(CASES.check_values, row, _COUNTS) and rules.is_good(rules.counts, row)):
        fixed.update(copies=1, shown=0, succeeded=0.0, novelty=1.0)
    safe = {
        **{"created_at": time.time(), "verified_at": time.time(), "verified_run": 0.0},
        **{"pinned": 0, "hidden": 1, "trust": 0, "source": "agent"},  # the least trusted source
    }
    fixed.update({name: value for name, value in safe.items() if not rules.is_good(CASES.check_values, row, (name,))})
    if not rules.is_good(CASES.check_values, row, _BY_WHOM):
        fixed.update(actor=None, channel=None)
    return fixed


def _vector(connection: Connection, stored: Any, query: str, embed: Embed) -> NDArray[np.float32]:
    note = fact(connection, "embedder")
    dimension = None if note is None else rules.embedder_of(note)[1]
    try:
        return rules.unit_vector(stored, dimension)
    except InvalidInput:
        return rules.unit_vector(pack_floats(embed([query])[0]), dimension)


def _metadata(connection: Connection, namespace: int, key: int, text: Any) -> None:
    """Rebuild the rows of a case's metadata from its text; remove them if the text cannot be read."""
    try:
        metadata = rules.metadata_of(text)
    except InvalidInput:
        metadata = {}
        connection.execute("UPDATE case_text SET metadata = '{}' WHERE key = ?", (key,))
    connection.execute("DELETE FROM field WHERE cases_key = ?", (key,))
    keep_fields(connection, BY_FIELD, namespace, key, metadata)


def _episode(connection: Connection, key: Any, embed: Embed) -> str:
    """Set an episode's status to what its outcomes say; remove an unreadable episode, but keep its case."""
    del embed
    query = "SELECT key FROM outcome WHERE episode = ? AND withdrawn_at IS NULL ORDER BY key DESC"
    outcomes = [one for (one,) in connection.execute(query, (key,)).fetchall()]
    with as_stored(connection):
        row = _row(connection, "SELECT * FROM episode WHERE key = ?", key)
    for name in (name for name, value in row.items() if isinstance(value, Undecodable)):
        connection.execute(
            f"UPDATE OR IGNORE episode SET {name} = ? WHERE key = ?", (str(row[name]), key)
        )  # decoded as far as possible
    if not rules.is_good(EPISODE.check_values, row, _BY_WHOM):
        connection.execute("UPDATE episode SET actor = NULL, channel = NULL WHERE key = ?", (key,))
        row.update(actor=None, channel=None)
    if not rules.is_good(EPISODE.check_values, row, [name for name in EPISODE.names if name not in ("metadata", "reported")]):
        forget_episode(connection, key, Counter())
        return "episodes removed"
    if not rules.is_good(EPISODE.check_values, row, ("metadata",)):
        connection.execute("UPDATE episode SET metadata = NULL WHERE key = ?", (key,))
        connection.execute("DELETE FROM episode_field WHERE episode = ?", (key,))
    if not rules.is_good(EPISODE.check_values, row, ("reported",)):
        connection.execute("UPDATE episode SET reported = NULL WHERE key = ?", (key,))
    connection.executemany("UPDATE outcome SET withdrawn_at = at WHERE key = ?", [(one,) for one in outcomes[1:]])
    if not outcomes:
        for one in OBSERVERS:
            one.on_withdrawn(connection, _NO_OUTCOME, key, "taken back")
    episode_states.mend(connection, key, judged=bool(outcomes))
    for table in ("attempt", "judged_attempt"):
        connection.execute(f"DELETE FROM {table} WHERE episode = ?", (key,))
    return "episodes mended"


def _expired(connection: Connection, key: Any, embed: Embed) -> str:
    del embed
    with as_stored(connection):
        room.remove_aside(connection, [key])
    return "expired cases removed"


def _field(connection: Connection, key: Any, embed: Embed) -> str:
    if connection.execute("SELECT 1 FROM cases WHERE key = ?", (key,)).fetchone() is not None:
        return _case(connection, key, embed)
    connection.execute("DELETE FROM field WHERE cases_key IS ?", (key,))
    return "field removed"


def _solution(connection: Connection, key: Any, embed: Embed) -> str:
    """Give a solution a new, unique digest: which cases share the solution stays known."""
    del embed
    whose = connection.execute("SELECT namespace FROM cases WHERE solution = ? LIMIT 1", (key,)).fetchone()
    if whose is None:
        connection.execute("DELETE FROM solution WHERE id = ?", (key,))
        return "solutions removed"
    new_digest = "UPDATE solution SET digest = ?, namespace = ? WHERE id = ?"
    connection.execute(new_digest, (uuid.uuid4().hex, whose[0], key))
    return "solutions mended"


def _namespace(connection: Connection, key: Any, embed: Embed) -> str:
    del embed
    if not rules.is_good(rules.NAMESPACE, key, "id"):  # the rows that refer to it are faulty and are handled themselves
        connection.execute("DELETE FROM namespace WHERE id IS ?", (key,))
        return "namespaces removed"
    connection.execute(_SET_NAMESPACE, (key, f"recovered-{key}"))
    return "namespaces renamed"


def _meta(connection: Connection, key: Any, embed: Embed) -> str:
    del embed
    if key == "embedder":
        return "left"
    connection.execute("DELETE FROM meta WHERE CAST(key AS BLOB) IS ?", (_raw(key),))
    return "meta removed"


def _sequence(connection: Connection, key: Any, embed: Embed) -> str:
    """Mend the counter of a table's keys, so that the next row gets the key after the last one."""
    del embed
    assert isinstance(connection, sqlite3.Connection)  # only SQLite has this table
    if key in numbering.KEYS:
        numbering.follow_last(connection, key)
    else:
        connection.execute("DELETE FROM sqlite_sequence WHERE CAST(name AS BLOB) IS ?", (_raw(key),))
    return "sequences mended"


def _raw(key: Any) -> Any:
    """Return the bytes of a text as stored in the file."""
    return key.raw if isinstance(key, Undecodable) else key.encode() if isinstance(key, str) else key


_CURES: dict[str, Callable[[Connection, Any, Embed], str]] = {
    "meta": _meta,
    "sqlite_sequence": _sequence,
    "namespace": _namespace,
    "episode": _episode,
    "solution": _solution,
    "cases": _case,
    "case_text": _case,
    "case_vector": _case,
    "field": _field,
    "expired": _expired,
}
