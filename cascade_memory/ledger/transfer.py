"""Exports everything in the ledger as plain records, and imports them.

Row numbers differ between ledgers, so records refer to cases and episodes by id, and to solutions by digest.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cascade_memory.domain.digests import digest, pair_key
from cascade_memory.domain.episode import SOURCES
from cascade_memory.domain.metadata import STORED_AT_MOST, check_metadata
from cascade_memory.domain.records import CASE_ADDED, SETTLED
from cascade_memory.domain.trajectory import Solution, gist
from cascade_memory.domain.trust import LEVELS
from cascade_memory.domain.validation import check_id, check_namespace, check_word
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.ledger import action_log, numbering, rules, transfer_parts
from cascade_memory.ledger.case_states import BY_PERSON, HELD
from cascade_memory.ledger.cases import HEAD_CHARS, insert_addition, insert_rest, solution_id
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import OBSERVERS
from cascade_memory.ledger.filters import EPISODES, OUTCOMES, keep_fields, kept_fields
from cascade_memory.ledger.room import displace
from cascade_memory.ledger.rows import note, pack_floats, pack_ints, pack_metadata, pack_solution, unpack_ints
from cascade_memory.ledger.running import now
from cascade_memory.ledger.schema import ATTEMPT, CASES, EPISODE, OUTCOME, RECALL
from cascade_memory.ledger.transfer_parts import a_list, additions_of, as_bytes, as_text, checked_additions

_CASE = CASES.travelling
_EPISODE = EPISODE.travelling
_LISTS = ("candidates", "groups")  # of keys, in place of which an export has ids and digests
_BLOBS = [column.name for column in RECALL.columns if column.type is bytes and column.name not in _LISTS]
_RECALL = [name for name in RECALL.travelling if name not in (*_LISTS, *_BLOBS)]
_DEFAULTS = {  # of fields that exports of older versions lack
    **{"holdout": 0.0, "shadow": None, "shadow_numbers": None, "shadow_context": None},
    **{"pinned": 0, "hidden": 0, "judged": False, "actor": None, "channel": None, "trust": None},
    **{"fields": None, "agents_words": None, "additions": None, "unkept": None, "forgot": None},
}
_OUTCOME = [name for name in OUTCOME.travelling if name != "metadata"]
_ATTEMPT = ATTEMPT.travelling
_ROUNDING = 1e-6  # rounding error of a norm in float32


def dump(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield the records of episodes, recorded runs, cases, recalls, outcomes and the audit log.

    A record comes after the records that it refers to.
    """
    names: dict[int, str] = dict(connection.execute("SELECT id, name FROM namespace").fetchall())
    digests: dict[int, str] = dict(connection.execute("SELECT id, digest FROM solution").fetchall())
    episodes: dict[int, str] = dict(connection.execute("SELECT key, id FROM episode").fetchall())
    cases: dict[int, str] = dict(connection.execute("SELECT key, id FROM cases").fetchall())
    nested = transfer_parts.Nested(connection)
    of_capabilities = [one.exported(connection, cases) for one in OBSERVERS]
    for row in _rows(connection, "episode LEFT JOIN episode_vector USING (key)", ["key", *_EPISODE, "vector", "namespace"]):
        yield {
            "kind": "episode",
            **{name: row[name] for name in _EPISODE if name != "metadata"},
            "vector": as_text(row["vector"]),
            "namespace": names[row["namespace"]],
            "fields": _metadata(row["metadata"]),
            **nested.of("episode", row["key"]),
        }
    for table in ("attempt", "judged_attempt"):
        for row in _rows(connection, table, [*_ATTEMPT, "episode"], key="episode"):
            names_of = connection.execute("SELECT namespace FROM episode WHERE key = ?", (row["episode"],)).fetchone()
            about = {"kind": "attempt", "judged": table == "judged_attempt", "namespace": names[names_of[0]]}
            yield {**about, **row, "episode": episodes[row["episode"]]}
    joined = "cases JOIN case_text USING (key) JOIN case_vector USING (key)"
    columns = [
        "cases.key",
        *(f"cases.{name}" for name in _CASE),
        "cases.solution",
        "cases.namespace",
        "episode",
        "solution_kind",
    ]
    for row in _rows(connection, joined, [*columns, "case_text.solution AS text", "metadata", "vector"], key="cases.key"):
        yield {
            "kind": "case",
            **{name: value for name, value in row.items() if name != "key"},
            "hidden": BY_PERSON if row["hidden"] == BY_PERSON | HELD else row["hidden"],  # as older versions know it
            "solution": digests[row["solution"]],
            "namespace": names[row["namespace"]],
            "episode": episodes.get(row["episode"]),
            "metadata": json.loads(row["metadata"]),
            "vector": as_text(row["vector"]),
            "additions": additions_of(connection, row["key"]),
            **nested.of("cases", row["key"]),
        }
    for row in _rows(connection, "recall", [*_RECALL, *_BLOBS, "candidates", "groups", "episode", "namespace"]):
        if row["namespace"] not in names:  # a search that was written down just when the name of its namespace was forgotten
            continue
        yield {
            "kind": "recall",
            **{name: row[name] for name in _RECALL if name != "kind"},
            "recall_kind": row["kind"],
            **{name: as_text(row[name]) for name in _BLOBS},
            "candidates": [cases.get(int(key)) for key in unpack_ints(row["candidates"])],
            "groups": [digests.get(int(group)) for group in unpack_ints(row["groups"])],
            "episode": episodes.get(row["episode"]),
            "namespace": names[row["namespace"]],
        }
    for row in _rows(connection, "outcome", ["key", *_OUTCOME, "metadata", "episode", "namespace", "cases_key"]):
        yield {
            "kind": "outcome",
            **{name: row[name] for name in _OUTCOME},
            "episode": episodes[row["episode"]],
            "namespace": names[row["namespace"]],
            "case": cases.get(row["cases_key"]),
            "fields": _metadata(row["metadata"]) or kept_fields(connection, OUTCOMES, row["key"]),
            **nested.of("outcome", row["key"]),
            **_more(of_capabilities, "outcome", row["key"]),
        }
    for action in transfer_parts.dump_actions(connection, names):
        yield {**action, **_more(of_capabilities, "action", action["id"])}


def _more(given: Iterable[Mapping[str, Callable[[Any], Mapping[str, Any]]]], owner: str, key: Any) -> dict[str, Any]:
    """Return what capabilities export in the record of a row."""
    return {name: value for one in given if owner in one for name, value in one[owner](key).items()}


def _rows(connection: Connection, table: str, columns: list[str], key: str = "key") -> Iterator[dict[str, Any]]:
    after = 0
    names = [column.split(" AS ")[-1].split(".")[-1] for column in columns]
    while True:
        rows = connection.execute(
            f"SELECT {', '.join(columns)}, {key} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT 500", (after,)
        ).fetchall()
        if not rows:
            return
        for row in rows:
            yield dict(zip(names, row[:-1], strict=True))
        after = rows[-1][-1]


def _metadata(packed: str | None) -> dict[str, Any]:
    return {} if packed is None else json.loads(packed)


def load(connection: Connection, records: Iterable[dict[str, Any]], dimension: int, key: Callable[[Solution], str]) -> int:
    """Insert the records that do not exist yet, inside the caller's transaction; return how many were inserted.

    Every field is checked. Pairs, digests and heads are computed here (digests by ``key``, which is equal for solutions that
    agree): with values from the file, one case could pass for another.
    """
    importer = _Importer(connection, dimension, key)
    inserted = 0
    for line, record in enumerate(records, start=2):
        try:
            inserted += importer.insert(record)
        except (CascadeError, sqlite3.IntegrityError, KeyError) as error:
            reason = f"the field {error} is missing" if isinstance(error, KeyError) else error
            raise InvalidInput(f"line {line} is not a valid record of an export: {reason}; nothing was imported") from error
    importer.check_complete()
    for namespace, of_audit in sorted(importer.namespaces.items()):
        for one in OBSERVERS:
            one.on_import_ended(connection, namespace, of_audit=of_audit)
    return inserted


class _Importer:
    def __init__(self, connection: Connection, dimension: int, key: Callable[[Solution], str]) -> None:
        self._connection, self._dimension, self._agreeing = connection, dimension, key
        self.namespaces: dict[int, bool] = {}  # into which something was imported, and whether that was an audit entry
        self._new_episodes: dict[str, tuple[int, int]] = {}  # id -> (key, namespace)
        self._settled: set[str] = set()  # new episodes with the status settled
        self._judged: set[str] = set()  # new episodes with an outcome that was not withdrawn
        # (namespace, id in the export) -> key of the case that has the same pair in this ledger
        self._known_cases: dict[tuple[int, str], int] = {}
        # (namespace, digest in the export) -> digest of the same solution in this ledger
        self._digests: dict[tuple[int, str], str] = {}

    def insert(self, record: dict[str, Any]) -> int:
        """Insert a record; return 1, or 0 if the record exists already, or belongs to an older episode."""
        record = {**_DEFAULTS, **record}
        namespace = numbering.create(self._connection, check_namespace(record["namespace"]))
        kinds = {
            "episode": self._episode,
            "attempt": self._attempt,
            "case": self._case,
            "recall": self._recall,
            "outcome": self._outcome,
            "action": self._action,
        }
        inserted = kinds[check_word(record["kind"], tuple(kinds), "kind")](record, namespace)
        if inserted:
            self.namespaces[namespace] = self.namespaces.get(namespace, False) or record["kind"] == "action"
        return inserted

    def check_complete(self) -> None:
        """Raise if an episode is settled without an outcome, or has an outcome without being settled."""
        wrong = self._settled ^ self._judged
        if wrong:
            raise InvalidInput(
                f"the episode {min(wrong)!r} of this export is settled without an outcome, or has an outcome without being "
                "settled; nothing was imported"
            )

    def _key(self, table: str, identity: object, namespace: int) -> int | None:
        """Return the key of a row with this id; None if this namespace has none: other namespaces must not be referred to."""
        if identity is None:
            return None
        identity = check_id(identity, f"the id in {table}")
        query = f"SELECT key FROM {table} WHERE id = ? AND namespace = ?"
        row = self._connection.execute(query, (identity, namespace)).fetchone()
        return None if row is None else int(row[0])

    def _is_known(self, table: str, identity: object) -> bool:
        query = f"SELECT 1 FROM {table} WHERE id = ?"
        return self._connection.execute(query, (check_id(identity, "id"),)).fetchone() is not None

    def _new_episode(self, identity: object, namespace: int) -> int | None:
        """Return the key of an episode that this import created; None if the episode existed before."""
        found = self._new_episodes.get(check_id(identity, "episode"))
        if found is not None and found[1] != namespace:
            raise InvalidInput(f"the episode {identity!r} belongs to another namespace")
        return None if found is None else found[0]

    def _insert(self, table: str, values: dict[str, Any], key: str = "key") -> int:
        marks = ",".join("?" * len(values))
        query = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks}) RETURNING {key}"
        return int(self._connection.execute(query, list(values.values())).fetchone()[0])

    def _episode(self, record: dict[str, Any], namespace: int) -> int:
        if self._is_known("episode", record["id"]):
            return 0
        vector = None if record["vector"] in (None, "") else self.vector(record["vector"])
        values = {**record, "metadata": _packed(fields := check_metadata(record["fields"], most=STORED_AT_MOST))}
        EPISODE.check(values, _EPISODE)
        key = self._insert("episode", {**{name: values[name] for name in _EPISODE}, "namespace": namespace})
        keep_fields(self._connection, EPISODES, namespace, key, fields)
        self._new_episodes[record["id"]] = (key, namespace)
        if record["status"] == "settled":
            self._settled.add(record["id"])
        if vector is not None:  # a compacted episode has none
            self._insert("episode_vector", {"key": key, "vector": vector})
        transfer_parts.insert_nested(self._connection, "episode", key, namespace, record)
        return 1

    def _attempt(self, record: dict[str, Any], namespace: int) -> int:
        episode = self._new_episode(record["episode"], namespace)
        if episode is None:
            return 0
        ATTEMPT.check(record, _ATTEMPT)
        table = "judged_attempt" if record["judged"] is True else "attempt"
        values = {**{name: record[name] for name in _ATTEMPT}, **_solution(record), "episode": episode}
        self._insert(table, values, key="episode")
        return 1

    def _case(self, record: dict[str, Any], namespace: int) -> int:
        earlier = {"novelty": 1.0, "verified_at": record["created_at"]}  # exports of version 0.1 lack these fields
        record = {**earlier, **record}
        if record["trust"] is None:  # nor which source its trust comes from
            record["trust"] = LEVELS[check_word(record["source"], SOURCES, "source")]
        CASES.check(record, [name for name in _CASE if name != "pair"])
        solution = rules.solution(record["solution_kind"], record["text"], needed=True)
        assert solution is not None
        fields, vector = check_metadata(record["metadata"], most=STORED_AT_MOST), self.vector(record["vector"])
        pair, here = pair_key(record["query"], solution), digest(self._agreeing(solution))
        self._digests.setdefault((namespace, _digest_of(record["solution"])), here)
        known = self._connection.execute("SELECT key FROM cases WHERE namespace = ? AND pair = ?", (namespace, pair)).fetchone()
        if known is not None or self._is_known("cases", record["id"]):
            same = self._key("cases", record["id"], namespace) if known is None else int(known[0])
            if same is not None:
                self._known_cases[namespace, record["id"]] = same
            return 0
        additions = checked_additions(record)
        displace(self._connection, namespace, pair, record["id"])
        key = self._insert(
            "cases",
            {
                **{name: record[name] for name in _CASE},
                "head": gist(solution, HEAD_CHARS),
                "pair": pair,
                "novelty": min(max(float(record["novelty"]), 0.0), 1.0),
                "verified_run": now(self._connection),  # running time of another folder does not apply here
                "namespace": namespace,
                "solution": solution_id(self._connection, namespace, here),
                "episode": self._key("episode", record["episode"], namespace),
            },
        )
        insert_rest(self._connection, namespace, key, pack_solution(solution), vector, fields)
        for one in additions:
            insert_addition(self._connection, namespace, key, **one)
        transfer_parts.insert_nested(self._connection, "cases", key, namespace, record)
        note(self._connection, namespace, CASE_ADDED, key)
        return 1

    def _recall(self, record: dict[str, Any], namespace: int) -> int:
        episode = None if record["episode"] is None else self._new_episode(record["episode"], namespace)
        if (record["episode"] is not None and episode is None) or self._is_known("recall", record["id"]):
            return 0
        candidates, groups = a_list(record["candidates"], "candidates"), a_list(record["groups"], "groups")
        row = {name: record["recall_kind" if name == "kind" else name] for name in _RECALL}
        row.update({name: as_bytes(record[name], name) for name in _BLOBS})
        if row["forgot"] is None:
            row["k"], row["forgot"] = rules.k_and_forgot(row["k"])
        if row["shadow"] is None:
            row["shadow_numbers"] = row["shadow_context"] = None
        row["candidates"] = pack_ints(np.array([self._key("cases", one, namespace) or 0 for one in candidates], np.int64))
        row["groups"] = pack_ints(np.array([self._group(one, namespace) for one in groups], np.int64))
        RECALL.check(row, RECALL.travelling)
        self._insert("recall", {**row, "episode": episode, "namespace": namespace})
        return 1

    def _group(self, digest_there: object, namespace: int) -> int:
        """Return the id, in this ledger, of a solution that has this digest in the export; 0 if the digest is None.

        A solution that no case of the export has gets an id that no case shares.
        """
        if digest_there is None:
            return 0
        there = _digest_of(digest_there)
        here = self._digests.get((namespace, there)) or digest(f"\x00of an export\x00{there}")
        return solution_id(self._connection, namespace, here)

    def _outcome(self, record: dict[str, Any], namespace: int) -> int:
        episode = self._new_episode(record["episode"], namespace)
        if episode is None:
            return 0
        by_agent = record["source"] == "agent" and record["solution"] is not None
        record["agents_words"] = int(by_agent) if record["agents_words"] is None else record["agents_words"]
        OUTCOME.check(record, _OUTCOME)
        fields = check_metadata(record["fields"], most=STORED_AT_MOST)
        if record["withdrawn_at"] is None:
            if record["episode"] in self._judged:
                raise InvalidInput(f"the episode {record['episode']!r} has two outcomes, and neither is withdrawn")
            self._judged.add(record["episode"])
        case = record["case"]
        key = self._insert(
            "outcome",
            {
                **{name: record[name] for name in _OUTCOME},
                **_solution(record),
                "agents_words": record["agents_words"] or int(by_agent),
                "metadata": _packed(fields),
                "episode": episode,
                "namespace": namespace,
                "cases_key": None if case is None else self.case_here(case, namespace),
            },
        )
        keep_fields(self._connection, OUTCOMES, namespace, key, fields)
        transfer_parts.insert_nested(self._connection, "outcome", key, namespace, record)
        self._heard("outcome", key, namespace, record)
        # An unconfirmed report of an agent waits for confirmation here as well.
        if record["source"] == "agent" and record["withdrawn_at"] is None:
            self._connection.execute(
                "UPDATE episode SET reported = length(CAST(query AS BLOB)) + ? WHERE key = ? AND source = 'agent'",
                (len((record["solution"] or "").encode()), episode),
            )
        note(self._connection, namespace, SETTLED, key)
        return 1

    def _heard(self, owner: str, key: Any, namespace: int, record: Mapping[str, Any]) -> None:
        for one in OBSERVERS:
            one.on_imported(self._connection, owner, key, namespace, record, self)

    def _action(self, record: dict[str, Any], namespace: int) -> int:
        if self._is_known("action", record["id"]):
            return 0
        undoes = self._key("action", record["undoes"], namespace)
        action_log.append(self._connection, transfer_parts.action_row(record, namespace, undoes))
        self._heard("action", record["id"], namespace, record)
        return 1

    def case_here(self, identity: object, namespace: int) -> int | None:
        """Return the key, in this ledger, of a case that the export names by its id; None if it is not here."""
        return self._known_cases.get((namespace, check_id(identity, "case"))) or self._key("cases", identity, namespace)

    def vector(self, text: object) -> bytes:
        """Check a vector of the export, and return it as it is stored."""
        vector = rules.unit_vector(as_bytes(text, "vector"), self._dimension)
        norm = float(np.linalg.norm(vector))
        return pack_floats(vector if abs(norm - 1.0) < _ROUNDING else vector / norm)


def _solution(record: dict[str, Any]) -> dict[str, str | None]:
    """Return the columns of a solution, packed by this library: the file may have written it differently."""
    kind, text = pack_solution(rules.solution(record["solution_kind"], record["solution"]))
    return {"solution_kind": kind, "solution": text}


def _packed(fields: Mapping[str, Any]) -> str | None:
    return pack_metadata(fields) if fields else None


def _digest_of(value: object) -> str:
    """Check a digest from an export; it identifies a solution within that export only."""
    return check_id(value, "the digest of a solution")
