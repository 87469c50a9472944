"""Everything in the ledger as plain records, and back. Row numbers do not travel: cases go by id, solutions by digest."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, cast, get_args

import numpy as np

from cascade_memory.domain.episode import Arm, Status, check_source
from cascade_memory.domain.records import CASE_ADDED, SETTLED
from cascade_memory.domain.trajectory import check_solution
from cascade_memory.domain.validation import check_id, check_metadata, check_namespace, check_query, check_reward, check_share
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.cases import note, solution_id
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.filters import encode_value
from cascade_memory.ledger.packing import pack_ints, unpack_floats, unpack_ints, unpack_solution

_CASE = ["id", "query", "head", "pair", "source", "created_at", "copies", "shown", "succeeded", "novelty", "verified_at"]
_EPISODE = ["id", "query", "thread", "source", "arm", "holdout", "status", "opened_at", "closed_at"]
_RECALL = ["id", "query", "kind", "k", "at", "policy", "policy_version", "encoder", "shown", "baseline", "shadow"]
_BLOBS = ["chosen", "numbers", "features", "context", "agreement", "shadow_numbers", "shadow_context"]
_LATER = {"holdout": 0.0, "shadow": None, "shadow_numbers": None, "shadow_context": None}  # not in exports of older versions
_FINITE = ("features", "context", "shadow_numbers", "shadow_context")
_OUTCOME = ["value", "source", "at", "solution_kind", "solution", "learns", "withdrawn_at"]
_ATTEMPT = ["status", "solution_kind", "solution", "at"]
_RESULT_BATCH = 500


def dump(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield every case, episode, recall and outcome, in an order in which they can be read back."""
    names: dict[int, str] = dict(connection.execute("SELECT id, name FROM namespace").fetchall())
    digests: dict[int, str] = dict(connection.execute("SELECT id, digest FROM solution").fetchall())
    episodes: dict[int, str] = dict(connection.execute("SELECT key, id FROM episode").fetchall())
    cases: dict[int, str] = dict(connection.execute("SELECT key, id FROM cases").fetchall())
    for row in _rows(connection, "episode LEFT JOIN episode_vector USING (key)", [*_EPISODE, "vector", "namespace"]):
        yield {"kind": "episode", **row, "vector": _text(row["vector"]), "namespace": names[row["namespace"]]}
    for row in _rows(connection, "attempt", [*_ATTEMPT, "episode"], key="episode"):
        names_of = connection.execute("SELECT namespace FROM episode WHERE key = ?", (row["episode"],)).fetchone()
        yield {"kind": "attempt", **row, "episode": episodes[row["episode"]], "namespace": names[names_of[0]]}
    joined = "cases JOIN case_text USING (key) JOIN case_vector USING (key)"
    columns = [*(f"cases.{name}" for name in _CASE), "cases.solution", "cases.namespace", "episode", "solution_kind"]
    for row in _rows(connection, joined, [*columns, "case_text.solution AS text", "metadata", "vector"], key="cases.key"):
        yield {
            "kind": "case",
            **row,
            "solution": digests[row["solution"]],
            "namespace": names[row["namespace"]],
            "episode": episodes.get(row["episode"]),
            "metadata": json.loads(row["metadata"]),
            "vector": _text(row["vector"]),
        }
    for row in _rows(connection, "recall", [*_RECALL, *_BLOBS, "candidates", "groups", "episode", "namespace"]):
        yield {
            "kind": "recall",
            **{name: row[name] for name in _RECALL if name != "kind"},
            "recall_kind": row["kind"],
            **{name: _text(row[name]) for name in _BLOBS},
            "candidates": [cases.get(int(key)) for key in unpack_ints(row["candidates"])],
            "groups": [digests.get(int(group)) for group in unpack_ints(row["groups"])],
            "episode": episodes.get(row["episode"]),
            "namespace": names[row["namespace"]],
        }
    for row in _rows(connection, "outcome", ["key", *_OUTCOME, "episode", "namespace", "cases_key"]):
        yield {
            "kind": "outcome",
            **{name: row[name] for name in _OUTCOME},
            "episode": episodes[row["episode"]],
            "namespace": names[row["namespace"]],
            "case": cases.get(row["cases_key"]),
            "fields": _fields(connection, row["key"]),
        }


def _rows(connection: sqlite3.Connection, table: str, columns: list[str], key: str = "key") -> Iterator[dict[str, Any]]:
    after = 0
    names = [column.split(" AS ")[-1].split(".")[-1] for column in columns]
    while True:
        rows = connection.execute(
            f"SELECT {', '.join(columns)}, {key} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_RESULT_BATCH}", (after,)
        ).fetchall()
        if not rows:
            return
        for row in rows:
            yield dict(zip(names, row[:-1], strict=True))
        after = rows[-1][-1]


def _fields(connection: sqlite3.Connection, outcome: int) -> dict[str, Any]:
    """Return the metadata of an outcome that made no case."""
    fields: dict[str, list[Any]] = {}
    for name, value in connection.execute("SELECT name, value FROM outcome_field WHERE outcome = ?", (outcome,)):
        fields.setdefault(name, []).append(bool(value[0]) if isinstance(value, bytes) else value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def load(connection: sqlite3.Connection, records: Iterable[dict[str, Any]], dimension: int) -> int:
    """Insert records that are not there yet; return how many were taken. Runs inside the caller's transaction."""
    reader = _Reader(connection, dimension)
    taken = 0
    for line, record in enumerate(records, start=2):
        try:
            taken += reader.take(record)
        except Exception as error:
            raise InvalidInput(f"line {line} is no record of an export ({error!r}); nothing was imported") from error
    return taken


class _Reader:
    def __init__(self, connection: sqlite3.Connection, dimension: int) -> None:
        self._connection, self._dimension = connection, dimension
        self._new_episodes: set[str] = set()
        self._known_cases: dict[str, int] = {}  # of the export -> key of the case that stands here for the same pair

    def take(self, record: dict[str, Any]) -> int:
        record = {**_LATER, **record}
        namespace = self._namespace(check_namespace(record["namespace"]))
        kinds = {
            "episode": self._episode,
            "attempt": self._attempt,
            "case": self._case,
            "recall": self._recall,
            "outcome": self._outcome,
        }
        kind = kinds.get(record["kind"])
        if kind is None:
            raise ValueError(f"unknown kind {record['kind']!r}")
        return kind(record, namespace)

    def _namespace(self, name: str) -> int:
        self._connection.execute("INSERT OR IGNORE INTO namespace (name) VALUES (?)", (name,))
        return int(self._connection.execute("SELECT id FROM namespace WHERE name = ?", (name,)).fetchone()[0])

    def _key(self, table: str, identity: str | None) -> int | None:
        row = self._connection.execute(f"SELECT key FROM {table} WHERE id = ?", (identity,)).fetchone()
        return None if row is None else int(row[0])

    def _insert(self, table: str, values: dict[str, Any]) -> int:
        marks = ",".join("?" * len(values))
        cursor = self._connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _episode(self, record: dict[str, Any], namespace: int) -> int:
        if self._key("episode", record["id"]) is not None:
            return 0
        self._new_episodes.add(record["id"])
        values = {name: record[name] for name in _EPISODE}
        check_id(record["id"], "id")
        check_query(record["query"])
        check_share(record["holdout"], "holdout")
        _check_one_of(record["status"], get_args(Status), "status")
        _check_one_of(record["arm"], get_args(Arm), "arm")
        key = self._insert("episode", {**values, "namespace": namespace})
        if record["vector"]:  # else it was settled long ago, and compacted
            self._insert("episode_vector", {"key": key, "vector": self._vector(record["vector"])})
        return 1

    def _attempt(self, record: dict[str, Any], namespace: int) -> int:
        del namespace
        if record["episode"] not in self._new_episodes:
            return 0
        _check_solution(record["solution_kind"], record["solution"])
        values = {name: record[name] for name in _ATTEMPT}
        self._insert("attempt", {**values, "episode": self._key("episode", record["episode"])})
        return 1

    def _case(self, record: dict[str, Any], namespace: int) -> int:
        known = self._connection.execute(
            "SELECT key FROM cases WHERE id = ? OR (namespace = ? AND pair = ?)", (record["id"], namespace, record["pair"])
        ).fetchone()
        if known is not None:
            self._known_cases[record["id"]] = int(known[0])
            return 0
        check_id(record["id"], "id")
        check_query(record["query"])
        check_source(record["source"])
        _check_solution(record["solution_kind"], record["text"])
        fields = check_metadata(record["metadata"])
        check_reward(record.get("novelty", 1.0))  # a number in [0, 1] as well
        key = self._insert(
            "cases",
            {
                **{name: record[name] for name in _CASE if name in record},
                "verified_at": record.get("verified_at", record["created_at"]),  # exports of 0.1 do not say
                "namespace": namespace,
                "solution": solution_id(self._connection, namespace, record["solution"]),
                "episode": self._key("episode", record["episode"]),
            },
        )
        metadata = json.dumps(fields, ensure_ascii=False)
        text = {"key": key, "solution_kind": record["solution_kind"], "solution": record["text"], "metadata": metadata}
        self._insert("case_text", text)
        self._insert("case_vector", {"key": key, "vector": self._vector(record["vector"])})
        for name, value in fields.items():
            for one in value if isinstance(value, list) else [value]:
                self._connection.execute(
                    "INSERT OR IGNORE INTO field VALUES (?, ?, ?, ?)", (namespace, name, encode_value(one), key)
                )
        note(self._connection, namespace, CASE_ADDED, key)
        return 1

    def _recall(self, record: dict[str, Any], namespace: int) -> int:
        if record["episode"] is not None and record["episode"] not in self._new_episodes:
            return 0
        if self._key("recall", record["id"]) is not None:
            return 0
        check_id(record["id"], "id")
        arrays = {name: _bytes(record[name]) for name in _BLOBS}
        if record["shadow"] is None:
            arrays["shadow_numbers"] = arrays["shadow_context"] = None
        elif arrays["shadow_numbers"] is None or arrays["shadow_context"] is None:
            raise ValueError("a shadow's opinion is missing")
        _check_recall(arrays, len(record["candidates"]), len(record["groups"]))
        keys = [self._key("cases", one) or 0 for one in record["candidates"]]
        groups = [0 if one is None else solution_id(self._connection, namespace, one) for one in record["groups"]]
        values = {name: record["recall_kind" if name == "kind" else name] for name in _RECALL}
        self._insert(
            "recall",
            {
                **values,
                **arrays,
                "candidates": pack_ints(np.array(keys, np.int64)),
                "groups": pack_ints(np.array(groups, np.int64)),
                "episode": self._key("episode", record["episode"]),
                "namespace": namespace,
            },
        )
        return 1

    def _outcome(self, record: dict[str, Any], namespace: int) -> int:
        if record["episode"] not in self._new_episodes:
            return 0
        check_reward(record["value"])
        check_source(record["source"])
        _check_solution(record["solution_kind"], record["solution"])
        key = self._insert(
            "outcome",
            {
                **{name: record[name] for name in _OUTCOME},
                "episode": self._key("episode", record["episode"]),
                "namespace": namespace,
                "cases_key": self._known_cases.get(record["case"]) or self._key("cases", record["case"]),
            },
        )
        for name, value in check_metadata(record.get("fields")).items():
            for one in value if isinstance(value, list) else [value]:
                fields = (namespace, name, encode_value(one), key)
                self._connection.execute("INSERT OR IGNORE INTO outcome_field VALUES (?, ?, ?, ?)", fields)
        note(self._connection, namespace, SETTLED, key)
        return 1

    def _vector(self, text: str) -> bytes:
        blob = _bytes(text)
        assert blob is not None
        vector = unpack_floats(blob)
        if vector.shape != (self._dimension,) or not np.isfinite(vector).all():
            raise ValueError(f"a vector must be {self._dimension} finite numbers")
        return blob


def _check_one_of(value: object, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}")


def _check_solution(kind: object, text: object) -> None:
    if kind is None and text is None:
        return
    _check_one_of(kind, ("text", "trajectory"), "solution_kind")
    check_solution(unpack_solution(cast("str", kind), cast("str", text)))


def _check_recall(arrays: dict[str, bytes | None], n: int, groups: int) -> None:
    """Refuse arrays that do not belong together: every later look at them would fail."""
    floats = {name: unpack_floats(blob) for name, blob in arrays.items() if name != "chosen" and blob is not None}
    chosen = unpack_ints(arrays["chosen"] or b"")
    wrong = (
        groups != n
        or len(floats["numbers"]) != NUMBERS * n
        or (n and len(floats["features"]) % n)
        or ("agreement" in floats and len(floats["agreement"]) != n)
        or ("shadow_numbers" in floats and not _is_opinion(len(floats["shadow_numbers"]), n))
        or (len(chosen) and (chosen.min() < 0 or chosen.max() >= n))
        or not all(np.isfinite(floats[name]).all() for name in _FINITE if name in floats)
    )
    if wrong:
        raise ValueError("the arrays of this recall do not fit together")


def _is_opinion(numbers: int, n: int) -> bool:
    """Say whether so many numbers can be places, propensities and perhaps features of n candidates."""
    return numbers % n == 0 and numbers >= 2 * n if n else numbers == 0


def _text(blob: bytes | None) -> str | None:
    return None if blob is None else base64.b64encode(blob).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
