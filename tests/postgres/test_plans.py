"""Reading a few cases takes as long with many cases before them as with none."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.ledger.postgres.batch import Batch, Result
from cascade_memory.ledger.postgres.ledger import PostgresLedger

_CASES = 20_000


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    """A database of many cases; all have the vector of the first one."""
    url = new_database()
    with CascadeMemory(url, embedder="hashing", learn="off") as memory:
        memory.add("a task", "its solution")
    with psycopg.connect(url, autocommit=True, options="-c search_path=cascade_memory") as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("cases", "case_text", "case_vector"):
            columns = [
                name
                for (name,) in connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'cascade_memory'"
                    " AND table_name = %s ORDER BY ordinal_position",
                    (table,),
                )
            ]
            new = {"key": "number", "id": "gen_random_uuid()::text", "query": "query || number", "pair": "md5(number::text)"}
            values = ", ".join(new.get(name, name) for name in columns)
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, generate_series(2, {_CASES}) number"
            )
            connection.execute(f"ANALYZE {table}")
    return url


def _read(node: dict[str, object]) -> int:
    """Count the rows that a plan has read from tables."""
    own = int(node["Actual Rows"]) * int(node["Actual Loops"]) if "Relation Name" in node else 0  # type: ignore[call-overload]
    return own + sum(_read(part) for part in node.get("Plans", ()))  # type: ignore[attr-defined]


@pytest.mark.parametrize("after", [0, _CASES // 2, _CASES - 100])
@pytest.mark.parametrize("limit", [1, 64])
def test_reading_some_cases_reads_no_others(url: str, after: int, limit: int, monkeypatch: pytest.MonkeyPatch):
    sent: list[str] = []
    add = Batch.add

    def noting(self: Batch, text: str) -> Result:
        sent.append(text)
        return add(self, text)

    ledger = PostgresLedger(url)
    try:
        monkeypatch.setattr(Batch, "add", noting)
        assert len(ledger.cases.after(after, limit)) == limit
        assert len(ledger.scan(1, after, limit)) == limit
    finally:
        ledger.close()
    selects = [text for text in sent if "case_vector.vector" in str(text)]
    assert len(selects) == 2
    with psycopg.connect(url, options="-c search_path=cascade_memory") as connection:
        for text in selects:
            ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}").fetchall()  # type: ignore[arg-type]
            assert _read(plan[0]["Plan"]) <= 6 * limit, json.dumps(plan, indent=1)
