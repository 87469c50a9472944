"""A database of version 6 gets who wrote what, however many processes begin with that at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import psycopg

from cascade_memory import CascadeMemory, Retention
from cascade_memory.ledger.postgres import migration, steps

_BY_WHOM = ("episode", "outcome", "addition", "cases")
_BACK = "; ".join(
    [
        *(
            f"ALTER TABLE cascade_memory.{table} DROP COLUMN {name}"
            for table, names in (
                *((table, ("actor", "channel")) for table in _BY_WHOM),
                ("cases", ("trust", "probation")),
                ("expired", ("why", "actor")),
                ("action", ("digest",)),
            )
            for name in names
        ),
        "DROP TABLE cascade_memory.failure, cascade_memory.checked, cascade_memory.warning_decision",
        "UPDATE cascade_memory.version SET number = 6",
    ]
)
_STARTER = """
import sys
from cascade_memory.ledger.postgres.ledger import PostgresLedger
print("ready", flush=True)
sys.stdin.readline()
PostgresLedger(sys.argv[1]).close()
"""


def _of_version_6(url: str) -> dict[str, str]:
    """Fill a database, and make of it what version 6 wrote; return the ids of its cases by source."""
    with CascadeMemory(url, embedder="hashing", learn="inline", retention=Retention(ttl=10**6)) as memory:
        ids = {source: memory.add(f"task of {source}", "s", source=source) for source in ("agent", "judge", "host", "human")}
        memory.recall("task of human", k=1).reward(1.0, solution="t")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BACK)
        assert migration.differences(migration.shape_of(connection)) != []
    return ids


def _structure(url: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    with psycopg.connect(url) as connection:
        indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'cascade_memory' ORDER BY 1"
        columns = """SELECT table_name, column_name, column_default, is_nullable, collation_name
                     FROM information_schema.columns WHERE table_schema = 'cascade_memory' ORDER BY 1, 2"""
        return connection.execute(indexes).fetchall(), connection.execute(columns).fetchall()


def test_ten_starters_upgrade_a_database_once(new_database: Callable[[], str]):
    url, fresh = new_database(), new_database()
    CascadeMemory(fresh, embedder="hashing").close()
    ids = _of_version_6(url)
    command = [sys.executable, "-c", _STARTER, url]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(10)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in started:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT number FROM cascade_memory.version").fetchall() == [(steps.VERSION,)]
    assert _structure(url) == _structure(fresh)
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        trust = {source: memory.cases.get(case_id).trust for source, case_id in ids.items()}
        assert trust == {"agent": 0, "judge": 2, "host": 3, "human": 4}
        assert {(case.actor, case.channel) for case in memory.cases.all()} == {(None, None)}
        assert [one.actor for one in memory.sources.all()] == [None]
        memory.acting(actor="ann").add("another task", "s")
        assert [case.query for case in memory.cases.all(by_actor="ann")] == ["another task"]
        assert all(check.ok for check in memory.data.examine())
