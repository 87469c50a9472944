"""Exports and imports who added a case by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cascade_memory.domain.metadata import STORED_AT_MOST, check_metadata
from cascade_memory.ledger import rules
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import pack_solution
from cascade_memory.ledger.schema import ADDITION
from cascade_memory.ledger.transfer_nested import a_list, an_object

_BY_WHOM = ["actor", "channel"]
_COLUMNS = ADDITION.travelling


def dump(connection: Connection, case: int) -> list[dict[str, Any]]:
    """Return a record of each time that a case was added by hand."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM addition WHERE cases_key = ? ORDER BY key"
    found = [dict(zip(_COLUMNS, row, strict=True)) for row in connection.execute(query, (case,))]
    return [{**one, "metadata": json.loads(one["metadata"])} for one in found]


def checked(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of the additions of a case by hand.

    Exports of older versions lack these records. Then, for a case without an episode, one record is made from the case's own
    fields.
    """
    first = {"source": record["source"], "at": record["created_at"], "metadata": record["metadata"], "solution": None}
    first.update({name: record[name] for name in _BY_WHOM})
    by_hand = [first] if record["episode"] is None else []
    return [
        _one(record, addition)
        for addition in (by_hand if record["additions"] is None else a_list(record["additions"], "additions"))
    ]


def _one(record: Mapping[str, Any], addition: object) -> dict[str, Any]:
    given = {**dict.fromkeys(_BY_WHOM), **an_object(addition, "an addition")}  # older versions did not note by whom
    values: dict[str, Any] = {name: given[name] for name in _COLUMNS}
    if values["solution"] is not None:
        _, values["solution"] = pack_solution(rules.solution(record["solution_kind"], values["solution"]))
    ADDITION.check(values, [name for name in _COLUMNS if name != "metadata"])
    return {**values, "metadata": check_metadata(values["metadata"], most=STORED_AT_MOST)}
