"""The name of a namespace that was purged is in no row of a database, and its number is never given again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.assembly.move import move

ZOE = "zoe-quimby@example.org"


def test_no_row_names_a_namespace_that_was_purged_and_no_move_gives_its_number_again(
    tmp_path: Path, new_database: Callable[[], str]
):
    url = new_database()
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        memory.add("of others", "stays")
        memory.acting(namespace=ZOE).recall("a task", metadata={"user": ZOE}).reward(1.0, solution="s")
        memory.acting(namespace=ZOE).cases.search("a task")
        number = engine_of(memory).namespace_id(ZOE)
        receipt = memory.acting(namespace=ZOE).forget(everything=True, purge=True)
        assert (receipt.cases, receipt.names) == (1, ())
        assert memory.data.namespaces() == ["default"]
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'cascade_memory'"
        with engine_of(memory).parts.ledger.connections.read() as connection:
            for (table,) in connection.execute(tables).fetchall():
                assert ZOE not in str(connection.execute(f"SELECT * FROM cascade_memory.{table}").fetchall()), table
    move(url, tmp_path / "moved")
    with CascadeMemory(tmp_path / "moved", embedder="hashing", learn="inline") as memory:
        memory.acting(namespace=ZOE).add("a task", "s")
        later = engine_of(memory).namespace_id(ZOE)
        assert later > number
        memory.acting(namespace=ZOE).forget(everything=True, purge=True)
    back = new_database()
    move(tmp_path / "moved", back)
    with CascadeMemory(back, embedder="hashing", learn="inline") as memory:
        memory.acting(namespace=ZOE).add("a task", "s")
        assert engine_of(memory).namespace_id(ZOE) > later
