"""Exports and imports failures beside their outcomes, and decisions about warnings beside their entries of the audit log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cascade_memory.domain.actions import OF_WARNINGS
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.trust import LEVELS
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.transfer_nested import an_object, as_text, put
from cascade_memory.ledger.warning_tables import FAILURE, WARNING_DECISION

_DECISION = WARNING_DECISION.travelling


class Dumped:
    """Reads the failures that an export contains; most outcomes have none."""

    def __init__(self, connection: Connection, cases: Mapping[int, str]) -> None:
        self._connection, self._cases = connection, cases
        self._failed = {key for (key,) in connection.execute("SELECT key FROM failure").fetchall()}

    def failure(self, outcome: int) -> dict[str, Any] | None:
        """Return the failure of an outcome, if it has one."""
        if outcome not in self._failed:
            return None
        names = (*FAILURE.travelling, "cases_key")
        query = f"SELECT {', '.join(names)} FROM failure WHERE key = ?"
        row = dict(zip(names, self._connection.execute(query, (outcome,)).fetchone(), strict=True))
        case = self._cases.get(row.pop("cases_key"))
        return {**row, "words": json.loads(row["words"]), "case": case, "vector": as_text(row["vector"])}


def failure_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the record of an outcome says of its failure."""
    return an_object(record["failure"], "the failure of an outcome")


def insert_failure(
    connection: Connection, record: Mapping[str, Any], outcome: int, namespace: int, vector: bytes, case: int | None
) -> None:
    """Store the failure of an imported outcome; ``case`` is the key, in this ledger, of the case that says what works."""
    given = failure_of(record)
    if record["withdrawn_at"] is not None or record["source"] not in TRUSTED_SOURCES:
        raise InvalidInput("only an outcome that stands, and that somebody trusted has reported, blames a step")
    row = {name: given[name] for name in FAILURE.travelling if name != "vector"}
    row["words"] = json.dumps(given["words"], ensure_ascii=False)
    row["instead"] = "" if case is None and given["case"] is not None else given["instead"]
    row["cases_key"] = case
    FAILURE.check(row, row)
    row["trust"] = min(row["trust"], LEVELS[record["source"]])
    put(connection, "failure", {**row, "key": outcome, "namespace": namespace, "vector": vector})


def decision_of(connection: Connection, entry: str) -> dict[str, Any] | None:
    """Return the decision about a warning that this audit entry is about; None if there is none or it was taken back."""
    query = f"SELECT {', '.join(_DECISION)} FROM warning_decision WHERE action = ?"
    row = connection.execute(query, (entry,)).fetchone()
    return None if row is None else dict(zip(_DECISION, row, strict=True))


def insert_decision(connection: Connection, record: Mapping[str, Any], namespace: int) -> None:
    """Store the decision of an imported entry, if its warning has a failure here."""
    given = an_object(record["decision"], "the decision of an action")
    row = {name: given[name] for name in _DECISION}
    WARNING_DECISION.check(row, _DECISION)
    if record["action"] not in OF_WARNINGS or (record["action"] == "advise") != (row["retired"] is None):
        raise InvalidInput(f"an action of the kind {record['action']} does not decide this")
    warning = check_id(record["subject"], "subject")
    known = "SELECT 1 FROM failure WHERE namespace = ? AND warning = ? LIMIT 1"
    if connection.execute(known, (namespace, warning)).fetchone() is not None:
        put(connection, "warning_decision", {**row, "action": record["id"], "namespace": namespace, "warning": warning})
