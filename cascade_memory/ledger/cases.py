"""Cases: functions that write their rows inside a caller's transaction, and the part of the ledger that reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import NewAction, only
from cascade_memory.domain.case import Case
from cascade_memory.domain.records import CASE_ADDED, CASE_REMOVED, EVICTED, EXPIRED, FORGOTTEN, PURGED, CaseRecords, NewCase
from cascade_memory.domain.trajectory import Solution, gist
from cascade_memory.domain.trust import LEVELS
from cascade_memory.domain.validation import GREATEST
from cascade_memory.ledger import action_log, case_states, numbering, room, running
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.filters import ADDITIONS, CASES, keep_fields, shares_of
from cascade_memory.ledger.rows import (
    KEYS,
    SET_VECTOR,
    check_columns,
    fetched,
    fetched_for,
    note,
    pack_floats,
    pack_metadata,
    pack_solution,
    solution_of,
    usable,
    with_vectors,
)

HEAD_CHARS, _CHARACTERS = 240, 8_000_000  # the greatest length of a head, and of the solutions that are read at once
_SOLUTION, _KEY = 3, 11  # positions in _COLUMNS
_SET_TEXT = """INSERT INTO case_text VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
  solution_kind = excluded.solution_kind, solution = excluded.solution, metadata = excluded.metadata"""
# What is asked before a case is stored: the case with the same query and solution, the expired ones that it replaces, and the
# number of its solution.
KNOWN = f"""same.key, same.id, same_text.solution, same.hidden & {case_states.HELD},
  (SELECT group_concat(key) FROM expired WHERE (namespace = ? AND pair = ?) OR id = ?),
  (SELECT id FROM solution WHERE namespace = ? AND digest = ?)"""
SAME = """LEFT JOIN cases AS same ON same.namespace = ? AND same.pair = ?
  LEFT JOIN case_text AS same_text ON same_text.key = same.key"""
_COLUMNS = """cases.id, cases.query, case_text.solution_kind, case_text.solution, case_text.metadata, cases.source,
  episode.id, cases.created_at, cases.copies, cases.shown, cases.succeeded, cases.key, namespace.name,
  cases.pinned, cases.hidden, cases.actor, cases.channel, cases.trust"""
_JOINED = f"""SELECT {_COLUMNS} FROM cases JOIN case_text ON case_text.key = cases.key
  JOIN namespace ON namespace.id = cases.namespace LEFT JOIN episode ON episode.key = cases.episode"""


def solution_id(connection: Connection, namespace: int, digest: str) -> int:
    """Return the id of the solution that has this digest; store the digest first if it is new."""
    new = "INSERT INTO solution (namespace, digest) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
    known = "SELECT id FROM solution WHERE namespace = ? AND digest = ?"
    row = connection.execute(new, (namespace, digest)).fetchone() or connection.execute(known, (namespace, digest)).fetchone()
    return int(row[0])


def known_values(case: NewCase) -> tuple[Any, ...]:
    """Return, for a case, the parameters of the SQL in ``KNOWN`` and ``SAME``."""
    pair = (case.namespace, case.pair_key)
    return (*pair, case.id, case.namespace, case.solution_key, *pair)


def known_of(connection: Connection, case: NewCase) -> Sequence[Any]:
    """Return what the ledger knows of a case before it is stored: one row with the columns of ``KNOWN``."""
    return connection.execute(f"SELECT {KNOWN} FROM (SELECT 1 AS one) AS one {SAME}", known_values(case)).fetchall()


def insert(
    connection: Connection,
    case: NewCase,
    packed: tuple[str | None, str | None] | None = None,
    episode: int | None = None,
    known: Sequence[Any] | None = None,
    run: float | None = None,
    seen: Sequence[int] = (),
    by: tuple[str | None, str | None] | None = None,
    *,
    tells: bool = True,
) -> tuple[int, str, bool]:
    """Store a case and return (key, id, whether it is new); an existing (query, solution) pair is only counted.

    ``packed`` is its solution, if that was packed already; ``known`` is the result of ``known_of`` and ``run`` the running
    time, if the caller has read them already. ``episode`` is the key of the episode that the case came from, and ``seen`` are
    the keys of the cases that were shown in that episode. The new case is trusted no more than those cases and its own source.
    ``by`` is the actor and the channel, if they are not those that the case itself names. Without ``tells``, the caller writes
    the line about the new case to the log of changes.
    """
    trust, levels = case_states.trust_of(LEVELS[case.source], seen)
    ((same, same_id, same_text, held, displaced, has_solution),) = known or known_of(connection, case)
    run = running.now(connection) if run is None else run
    kind, text = packed or pack_solution(case.solution)
    if same is not None:
        connection.execute(
            f"""UPDATE cases SET copies = copies + (CASE WHEN copies < {GREATEST} THEN 1 ELSE 0 END), verified_at = ?,
                 verified_run = CASE WHEN verified_run < ? THEN ? ELSE verified_run END,
                 trust = CASE WHEN trust < {trust} THEN {trust} ELSE trust END WHERE key = ?""",
            (case.created_at or time.time(), run, run, *levels, *levels, same),
        )
        _note_addition(connection, same, case, None if text == same_text else text)
        if held:  # a person may vouch for it now
            case_states.follow(connection, same)
        return int(same), str(same_id), False
    if displaced is not None:
        room.remove_aside(connection, [int(one) for one in displaced.split(",")])
    known_solution, (actor, channel) = (case.namespace, case.solution_key), (case.actor, case.channel) if by is None else by
    if has_solution is None:
        connection.execute("INSERT INTO solution (namespace, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", known_solution)
    (key,) = connection.execute(
        f"""INSERT INTO cases (id, namespace, query, head, solution, pair, source, episode, created_at, novelty, verified_at,
             verified_run, actor, channel, trust, hidden)
           VALUES (?, ?, ?, ?, (SELECT id FROM solution WHERE namespace = ? AND digest = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, {trust},
             {case_states.OF_NEW})
           RETURNING key""",
        (
            case.id,
            case.namespace,
            case.query,
            gist(case.solution, HEAD_CHARS),
            *known_solution,
            case.pair_key,
            case.source,
            episode,
            case.created_at,
            case.novelty,
            case.created_at,
            run,
            *(actor, channel),
            *levels,
            *(case.namespace, case_states.author_of_new(actor, case.source)),
        ),
    ).fetchone()
    insert_rest(connection, case.namespace, key, (kind, text), pack_floats(case.vector), case.metadata)
    _note_addition(connection, key, case, None)
    if tells:
        note(connection, case.namespace, CASE_ADDED, key)
    return key, case.id, True


def insert_rest(
    connection: Connection,
    namespace: int,
    key: int,
    packed: tuple[str | None, str | None],
    vector: bytes,
    metadata: Mapping[str, Any],
) -> None:
    """Store the other rows of a case: text, vector and fields. Orphaned rows with the same key are replaced."""
    connection.execute(_SET_TEXT, (key, *packed, pack_metadata(metadata)))
    connection.execute(SET_VECTOR.format("case_vector"), (key, vector))
    keep_fields(connection, CASES, namespace, key, metadata)


def _note_addition(connection: Connection, key: int, case: NewCase, own: str | None) -> None:
    """Record who added a case by hand, and its ``own`` wording if it was not stored; an episode's outcome records this."""
    if case.episode_id is not None:
        return
    about: dict[str, Any] = {"source": case.source, "at": case.created_at, "actor": case.actor, "channel": case.channel}
    insert_addition(connection, case.namespace, key, metadata=case.metadata, solution=own, **about)


def insert_addition(
    connection: Connection,
    namespace: int,
    key: int,
    *,
    source: str,
    at: float,
    metadata: Mapping[str, Any],
    solution: str | None,
    actor: str | None = None,
    channel: str | None = None,
) -> None:
    """Record that a case was added by hand; ``solution`` is given if it is worded differently from the stored one."""
    (addition,) = connection.execute(
        """INSERT INTO addition (namespace, cases_key, source, at, metadata, solution, actor, channel)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING key""",
        (namespace, key, source, at, pack_metadata(metadata), solution, actor, channel),
    ).fetchone()
    keep_fields(connection, ADDITIONS, namespace, addition, metadata)


def delete(connection: Connection, key: int, kind: str = CASE_REMOVED) -> None:
    """Delete a case, its text, its vector and its fields. ``kind`` is what the log says about the deletion."""
    room.take_away(connection, [key], kind, why="forgotten")


def delete_expired(connection: Connection, key: int) -> int:
    """Delete a case that is set aside; return how many were. It is logged, since statistics may still include the case."""
    row = connection.execute("SELECT namespace FROM expired WHERE key = ?", (key,)).fetchone()
    for one in HEARING:
        one.on_case_gone(connection, [key], "forgotten")  # even if the case was deleted long ago
    gone = room.remove_aside(connection, [key])
    for _, case_id in gone:
        note(connection, row[0], CASE_REMOVED, key, case_id)
    return len(gone)


def stored(connection: Connection, case_id: str, namespace: int) -> Case | None:
    """Return the complete case that has this id, inside a transaction; None if it does not exist or cannot be read."""
    rows = fetched(connection, f"{_JOINED} WHERE cases.id = ? AND cases.namespace = ?", (case_id, namespace))
    return next(iter(usable(rows, _case)), None)


class SQLCases:
    """Adds and evicts cases, and reads them completely."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def add(self, new: Sequence[NewCase], action: NewAction | None = None) -> list[str]:
        """Store cases, all or none, durably; return their ids, in order.

        A pair of query and solution that exists already is not stored again: its number of copies grows, and it keeps its id.
        """
        with self._connections.write(durable=True, brings_vectors=True) as connection:
            numbering.check(connection, *{case.namespace for case in new})
            differ = len({(case.namespace, case.pair_key) for case in new}) == len(new)  # storing one makes no other one known
            known = [known_of(connection, case) for case in new] if differ else [None] * len(new)
            run = running.now(connection)
            ids = [insert(connection, case, known=its, run=run)[1] for case, its in zip(new, known, strict=True)]
            if new:
                action_log.write(connection, new[0].namespace, action, subject=only(ids), counts={"cases": len(ids)})
            return ids

    def evict(self, keys: Sequence[int], *, aside: int = 0, ttl: float | None = None) -> None:
        """Remove cases to make room; their episodes and what was learned from them stay.

        Of the cases of a namespace that had to make room, the last ``aside`` are set aside, so that they can be brought back
        for a period of grace: seven days of running time (see ``Facts.running``), or ``ttl`` if that is shorter. After it,
        ``Expiry`` deletes them.
        """
        with self._connections.write(durable=False) as connection:
            namespaces = set[int]()
            if aside:
                until = running.now(connection) + (room.GRACE if ttl is None else min(room.GRACE, ttl))
                namespaces = room.put_aside(connection, keys, "evicted", time.time(), until)
            room.take_away(connection, keys, EVICTED)
            for namespace in namespaces:
                room.trim(connection, namespace, aside)

    def count(self, namespace: int | None, until: int = 2**62, *, hidden: bool = True) -> int:
        """Count the cases in a namespace, or in all, up to the key ``until``; without ``hidden``, those that may be shown."""
        with self._connections.read() as connection:
            where, values = ("", ()) if namespace is None else ("namespace = ? AND", (namespace,))
            query = f"SELECT count(*) FROM cases WHERE {where} key <= ?{'' if hidden else ' AND hidden = 0'}"
            return int(connection.execute(query, (*values, until)).fetchone()[0])

    def records(self, namespace: int) -> CaseRecords:
        """Return, for all cases in a namespace that may be shown, in order of age, their novelty and how they were used."""
        with self._connections.read() as connection:
            rows = connection.execute(
                "SELECT key, novelty, shown, succeeded, pinned FROM cases WHERE namespace = ? AND hidden = 0 ORDER BY key",
                (namespace,),
            ).fetchall()
            table = np.array(rows, np.float64).reshape(-1, 5)  # keys stay below 2^53, so floats hold them exactly
            return CaseRecords(
                keys=table[:, 0].astype(np.int64),
                novelty=table[:, 1],
                shown=table[:, 2],
                succeeded=table[:, 3],
                pinned=table[:, 4] > 0,
            )

    def behind(self, key: int, seq: int) -> int:
        """Return the number of cases after ``key``, plus the log lines after ``seq`` that removed cases up to ``key``."""
        with self._connections.read() as connection:
            (new,) = connection.execute("SELECT count(*) FROM cases WHERE key > ?", (key,)).fetchone()
            query = """SELECT count(*) FROM change
                       WHERE seq > ? AND kind IN (?, ?, ?, ?, ?) AND ref <= (CASE kind WHEN ? THEN 0 ELSE ? END)"""
            removed = (CASE_REMOVED, EVICTED, EXPIRED, FORGOTTEN, PURGED)  # a FORGOTTEN line about an episode removes no case
            (gone,) = connection.execute(query, (seq, *removed, FORGOTTEN, key)).fetchone()
            return int(new + gone)

    def by_key(self, keys: Sequence[int]) -> dict[int, Case]:
        """Return complete cases by key; deleted and unreadable ones are missing."""
        with self._connections.read() as connection:
            rows = fetched_for(connection, f"{_JOINED} WHERE cases.key IN ({KEYS})", keys)
        return {case.key: case for case in usable(rows, _case)}

    def alike(self, keys: NDArray[np.int64], namespace: int, metadata: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return for each case of a namespace which share of the metadata of a recall it has as well."""
        with self._connections.read() as connection:
            shares = shares_of(connection, namespace, keys.tolist(), metadata)
        return np.array([shares.get(key, 0.0) for key in keys.tolist()], np.float32)

    def by_id(self, ids: Sequence[str], namespace: int) -> list[Case]:
        """Return complete cases of a namespace by id; deleted and unreadable ones are missing."""
        with self._connections.read() as connection:
            rows = fetched_for(connection, f"{_JOINED} WHERE cases.id IN ({KEYS}) AND cases.namespace = ?", ids, namespace)
        return usable(rows, _case)

    def after(self, key: int, limit: int) -> list[tuple[Case, NDArray[np.float32]]]:
        """Return up to ``limit`` cases of all namespaces with keys after this one, and their vectors, in order of age.

        There may be fewer if their solutions are long, but the result is empty only if no cases follow.
        """
        with self._connections.read() as connection:
            # PostgreSQL does not conclude from one key to those that equal it: it would read the other tables from the start.
            query = f"""SELECT {_COLUMNS}, case_vector.vector FROM cases JOIN case_text ON case_text.key = cases.key
                    JOIN case_vector ON case_vector.key = cases.key JOIN namespace ON namespace.id = cases.namespace
                    LEFT JOIN episode ON episode.key = cases.episode
                    WHERE cases.key > ? AND case_text.key > ? AND case_vector.key > ? ORDER BY cases.key LIMIT ?"""
            while True:
                read = fetched(connection, query, (key, key, key, limit), _many_characters())
                rows, vectors = with_vectors([row for row in read if type(row[-1]) is bytes])
                found = usable(zip(rows, vectors, strict=True), lambda both: (_case(both[0][:-1]), both[1]))
                if found or not read:
                    return found
                key = read[-1][_KEY]  # no row of this batch can be used: go on with the next batch

    def page(self, namespace: int, limit: int, *, after: int | None = None, newest_first: bool = False) -> list[int]:
        """Return the next ``limit`` keys after the key ``after``; with ``newest_first``, those before it, greatest first."""
        compared, order, start = ("<", "DESC", 2**62) if newest_first else (">", "ASC", 0)
        query = f"SELECT key FROM cases WHERE namespace = ? AND key {compared} ? ORDER BY key {order} LIMIT ?"
        with self._connections.read() as connection:
            return [key for (key,) in connection.execute(query, (namespace, start if after is None else after, limit))]

    def keys_of(self, ids: Sequence[str]) -> list[int]:
        """Return the keys of cases by id, in any order; deleted cases are missing."""
        with self._connections.read() as connection:
            return [key for (key,) in fetched_for(connection, f"SELECT key FROM cases WHERE id IN ({KEYS})", ids)]

    def solutions(self, groups: Sequence[int]) -> dict[int, Solution]:
        """Return one stored solution for each group that still has a case; cases whose solutions agree have the same group."""
        with self._connections.read() as connection:
            rows = fetched_for(
                connection,
                f"""SELECT solution.id, case_text.solution_kind, case_text.solution FROM solution JOIN case_text
                    ON case_text.key = (SELECT key FROM cases WHERE cases.solution = solution.id LIMIT 1)
                    WHERE solution.id IN ({KEYS})""",
                groups,
            )
        return dict(usable(rows, lambda row: (row[0], solution_of(row[1], row[2]))))

    def told_apart(self, groups: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return, by group (see ``solutions``), (digest of the matcher's key, kind) of one solution; texts are not read."""
        with self._connections.read() as connection:
            query = f"""SELECT solution.id, solution.digest, case_text.solution_kind FROM solution JOIN case_text
                        ON case_text.key = (SELECT key FROM cases WHERE cases.solution = solution.id LIMIT 1)
                        WHERE solution.id IN ({KEYS})"""
            rows = fetched_for(connection, query, groups)
        return {group: (digest, kind) for group, digest, kind in rows}


def _many_characters() -> Callable[[list[Any]], bool]:
    """Build a function that says whether the solutions of the rows read so far are long enough in total to stop reading."""
    characters = 0

    def enough(rows: list[Any]) -> bool:
        nonlocal characters
        characters += len(rows[-1][_SOLUTION]) if isinstance(rows[-1][_SOLUTION], str) else 0
        return characters > _CHARACTERS

    return enough


def _case(row: Sequence[Any]) -> Case:
    check_columns(texts=(*row[:6], row[12]), maybe=(row[6], row[15], row[16]), numbers=(*row[8:12], row[17]), moments=row[7:8])
    return Case(
        id=row[0],
        query=row[1],
        solution=solution_of(row[2], row[3]),
        metadata=_metadata(row[4]),
        source=row[5],
        episode_id=row[6],
        created_at=row[7],
        copies=row[8],
        shown=row[9],
        succeeded=row[10],
        key=row[11],
        namespace=row[12],
        pinned=bool(row[13]),
        hidden=bool(row[14]),
        actor=row[15],
        channel=row[16],
        trust=row[17],
    )


def _metadata(text: str) -> dict[str, Any]:
    if isinstance(found := json.loads(text), dict):
        return cast("dict[str, Any]", found)
    raise TypeError("the metadata are not a JSON object")
