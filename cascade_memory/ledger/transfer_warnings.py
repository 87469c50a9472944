"""Exports and imports what belongs to warnings: failures beside their outcomes, checks beside their episodes, and decisions."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cascade_memory.domain.actions import OF_WARNINGS
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.trust import LEVELS
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import failure_rules
from cascade_memory.ledger.database import Connection

_FAILURE = ("warning", "why", "tool", "action", "happened", "words", "instead", "cases_key", "trust", "vector")
_CHECK = ("warning", "warned", "propensity", "at", "call", "repeated", "reward")
_DECISION = ("retired", "advice", "by_model")


class Dumped:
    """What an export says of warnings; most outcomes and episodes have nothing to say."""

    def __init__(self, connection: Connection, cases: Mapping[int, str]) -> None:
        self._connection, self._cases = connection, cases
        self._failed = {key for (key,) in connection.execute("SELECT key FROM failure").fetchall()}
        self._checked = {key for (key,) in connection.execute("SELECT DISTINCT episode FROM checked").fetchall()}

    def failure(self, outcome: int) -> dict[str, Any] | None:
        """Return the failure of an outcome, if it has one."""
        if outcome not in self._failed:
            return None
        query = f"SELECT {', '.join(_FAILURE)} FROM failure WHERE key = ?"
        row = dict(zip(_FAILURE, self._connection.execute(query, (outcome,)).fetchone(), strict=True))
        case = self._cases.get(row.pop("cases_key"))
        return {**row, "words": json.loads(row["words"]), "case": case, "vector": base64.b64encode(row["vector"]).decode()}

    def checks(self, episode: int) -> list[dict[str, Any]]:
        """Return what was checked in an episode."""
        if episode not in self._checked:
            return []
        query = f"SELECT {', '.join(_CHECK)} FROM checked WHERE episode = ? ORDER BY key"
        return [dict(zip(_CHECK, row, strict=True)) for row in self._connection.execute(query, (episode,)).fetchall()]


def failure_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the record of an outcome says of its failure."""
    return _object(record["failure"], "the failure of an outcome")


def insert_failure(
    connection: Connection, record: Mapping[str, Any], outcome: int, namespace: int, vector: bytes, case: int | None
) -> None:
    """Store the failure of an imported outcome; ``case`` is the key here of the case that says what works."""
    given = failure_of(record)
    if record["withdrawn_at"] is not None or record["source"] not in TRUSTED_SOURCES:
        raise InvalidInput("only an outcome that stands, and that somebody trusted has reported, blames a step")
    row = {name: given[name] for name in ("warning", "why", "tool", "action", "happened", "trust")}
    row["words"] = json.dumps(given["words"], ensure_ascii=False)
    row["instead"] = "" if case is None and given["case"] is not None else given["instead"]
    row["cases_key"] = case
    failure_rules.failure(row)
    row["trust"] = min(row["trust"], LEVELS[record["source"]])
    _insert(connection, "failure", {**row, "key": outcome, "namespace": namespace, "vector": vector})


def insert_checks(connection: Connection, checks: object, episode: int, namespace: int) -> None:
    """Store what was checked in an imported episode."""
    if not isinstance(checks, (list, tuple)):
        raise InvalidInput(f"checks must be a list, not a {type(checks).__name__}")
    for one in cast("Sequence[object]", checks):
        given = _object(one, "a check")
        row = {name: given[name] for name in _CHECK}
        failure_rules.check(row)
        _insert(connection, "checked", {**row, "episode": episode, "namespace": namespace})


def decision_of(connection: Connection, entry: str) -> dict[str, Any] | None:
    """Return the decision about a warning that an entry of the audit log is about, if it stands."""
    query = f"SELECT {', '.join(_DECISION)} FROM warning_decision WHERE action = ?"
    row = connection.execute(query, (entry,)).fetchone()
    return None if row is None else dict(zip(_DECISION, row, strict=True))


def insert_decision(connection: Connection, record: Mapping[str, Any], namespace: int) -> None:
    """Store the decision of an imported entry, if its warning has a failure here."""
    given = _object(record["decision"], "the decision of an action")
    row = {name: given[name] for name in _DECISION}
    failure_rules.decision(row)
    if record["action"] not in OF_WARNINGS or (record["action"] == "advise") != (row["retired"] is None):
        raise InvalidInput(f"an action of the kind {record['action']} does not decide this")
    warning = check_id(record["subject"], "subject")
    known = "SELECT 1 FROM failure WHERE namespace = ? AND warning = ? LIMIT 1"
    if connection.execute(known, (namespace, warning)).fetchone() is not None:
        _insert(connection, "warning_decision", {**row, "action": record["id"], "namespace": namespace, "warning": warning})


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a JSON object, not a {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _insert(connection: Connection, table: str, values: Mapping[str, Any]) -> None:
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
