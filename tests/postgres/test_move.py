"""A memory that moves into a database and back is the same memory."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest
from cluster import Cluster
from failed_once import check_once, fail_once
from in_traces import span
from inside import engine_of
from learned_folder import sql
from scored import recalled, score

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.move import move
from cascade_memory.cli import main
from cascade_memory.domain.waiting import patience
from cascade_memory.errors import InvalidInput, SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreReplaced
from cascade_memory.ledger import copying
from cascade_memory.ledger.copying import insert
from cascade_memory.ledger.numbering import greatest_keys
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ledger.schema import TABLES
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.snapshots.format import digest

NewDatabase = Callable[[], str]
METADATA = {
    "text": "Zoë's 東京 \\ 100 % 🎉",
    "long": "ä" * 3_000,
    "empty": "",
    "whole": 2**63 - 1,
    "least": -(2**63),
    "one": 1.0,
    "half": -0.5,
    "huge": 1e300,
    "tiny": 5e-324,
    "yes": True,
    "no": False,
    "texts": ["b", "a", "x" * 2_000],
    "numbers": [3, 1, 2**53 + 1],
    "floats": [3.0, 1.5],
}


def lived_in(folder: Path) -> None:
    """Fill a folder with everything that a ledger can hold."""
    with CascadeMemory(folder, embedder="hashing", learn="inline", ranking=Ranking(shadow="similarity")) as memory:
        memory.add([("a task with everything", "line\n\t'quoted' \\ and 🎉", dict(METADATA)), ("x" * 50_000, "y" * 300_000)])
        memory.add([("a task with everything", "line\n\t'quoted' \\ and 🎉", {"again": 1})], source="human")
        for i in range(40):
            recall = memory.recall(f"task {i} of kind {i % 4}", metadata={"user": f"u{i % 3}", "n": float(i)})
            memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 4}", metadata={"step": i, **METADATA})
        memory.reward(memory.recall("corrected").episode_id, 0.2)
        again = memory.recall("corrected twice").episode_id
        memory.reward(again, 0.2)
        memory.reward(again, 0.9, solution="better", overwrite=True)
        memory.cases.search("only looked up")
        with span():
            memory.recall("still open")
        recalled(memory, 9)
        memory.scores.collect([score(9, judge="human", by="ann")])
        memory.end(memory.recall("ended without a verdict").episode_id, solution="perhaps")
        judged = memory.recall("answered wrongly").episode_id
        memory.episodes.finish(judged, solution="wrong")
        memory.acting(actor="ann").review.correct(judged, "right", note="seen")
        gone = memory.recall("to be forgotten").episode_id
        memory.reward(gone, 1.0, solution="forgotten as well")
        memory.forget(episode_id=gone)
        fail_once(memory)
        check_once(memory)
        memory.acting(namespace="tenants/42: Zoë").add("in another namespace", "too")
        memory.acting(namespace="tenants/42: Zoë").recall("also there")
        memory.add([("the newest", "is forgotten", {"user": "nobody"})])
        memory.forget(where={"user": "nobody"})
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    with ledger.connections.write(durable=True) as connection:
        connection.execute("UPDATE cases SET verified_run = -10000 WHERE query = 'a task with everything'")
    assert ledger.expiry.expire(1, 5000.0).expired == 1
    with ledger.connections.write(durable=True) as connection:  # as if it had been verified when the folder began to run
        connection.execute("UPDATE expired SET record = json_set(record, '$.verified_run', 0.0)")
    ledger.close()


def rows(folder: Path) -> dict[str, list[object]]:
    """All that is in a ledger, but what each memory has for itself."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection:
        found = {
            table.name: sorted(map(repr, connection.execute(f"SELECT {table.listed} FROM {table.name}"))) for table in TABLES
        }
        found["sqlite_sequence"] = sorted(map(repr, connection.execute("SELECT name, seq FROM sqlite_sequence")))
    found["meta"] = [row for row in found["meta"] if not row.startswith(("('identity", "('generation", "('mirror"))]
    return found


def exported(folder: Path) -> list[str]:
    with CascadeMemory(folder, embedder="hashing", learn="off") as memory:
        memory.data.export(folder / "export.jsonl", progress=False)
    return (folder / "export.jsonl").read_text().splitlines()


def learned(folder: Path) -> list[tuple[int, int, int, str, str, str]]:
    every = SnapshotStore(folder / "snapshots").every()
    return [(one.namespace, one.seq, one.known, one.policy, one.encoder, digest(one.state)) for one in every]


def predictions(folder: Path) -> list[float]:
    """What the ranker expects of each candidate, for tasks like those it has seen and others."""
    found: list[float] = []
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for i in range(12):
            for one in memory.recall(f"task {i} of kind {i % 5}").explain().candidates:
                found += [one.similarity, one.utility, one.uncertainty, one.score]
    return found


def test_there_and_back_again(tmp_path: Path, new_database: NewDatabase):
    first, url, second = tmp_path / "first", new_database(), tmp_path / "second"
    lived_in(first)
    before = rows(first)
    moved = move(str(first), url)
    assert rows(first) == before
    back = move(url, second)
    assert moved == back
    assert all(moved.values()), moved
    assert rows(second) == before
    assert exported(first) == exported(second)
    assert learned(first) == learned(second)
    assert len(learned(first)) >= 1
    expected, found = predictions(first), predictions(second)
    assert len(expected) > 50
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_pooler_may_stand_between(tmp_path: Path, cluster: Cluster, new_database: NewDatabase):
    first, name = tmp_path / "first", urlsplit(new_database()).path[1:]
    lived_in(first)
    with cluster.pooled() as port:
        move(first, cluster.url(name, port))
        move(cluster.url(name, port), tmp_path / "second")
    assert rows(tmp_path / "second") == rows(first)


def test_a_key_is_never_given_twice(tmp_path: Path, new_database: NewDatabase):
    first, url, second = tmp_path / "first", new_database(), tmp_path / "second"
    lived_in(first)  # the case with the greatest key was forgotten
    move(first, url)
    ledger = PostgresLedger(url)
    ledger.bind(ledger.facts.get("embedder"))
    with ledger.connections.read() as connection:
        (last,) = connection.execute("SELECT max(key) FROM cases").fetchone()
    with ledger.connections.write(durable=True) as connection:
        key, _ = connection.execute(
            """INSERT INTO cases (id, namespace, query, head, solution, pair, source, created_at)
               SELECT 'new', 1, 'q', 'h', min(id), 'p', 'human', 1 FROM solution RETURNING key, id"""
        ).fetchone()
    assert ledger.namespace("a new one", create=True) == len(ledger.namespaces())
    with ledger.connections.write(durable=True) as connection:
        connection.execute("DELETE FROM cases WHERE key = ?", (key,))
    ledger.close()
    assert key > last + 1
    move(url, second)
    with CascadeMemory(second, embedder="hashing") as memory:
        memory.add("after all", "that")
    with contextlib.closing(sqlite3.connect(second / "ledger.sqlite3")) as connection:
        assert connection.execute("SELECT max(key) FROM cases").fetchone()[0] > key


def test_a_target_that_holds_a_memory_is_refused(tmp_path: Path, new_database: NewDatabase):
    first, second, url = tmp_path / "first", tmp_path / "second", new_database()
    for folder in (first, second):
        with CascadeMemory(folder, embedder="hashing") as memory:
            memory.add("a task", "a solution")
    move(first, url)
    before = rows(second)
    with pytest.raises(InvalidInput, match=r"there is a memory in the database test_.* already; nothing was moved"):
        move(second, url)
    with pytest.raises(InvalidInput, match=r"there is a memory in .*second already"):
        move(url, second)
    assert rows(second) == before
    assert {len(exported(first)), len(exported(second))} == {3}  # a header, the case, and who added it


def test_a_mistyped_place_makes_nothing(tmp_path: Path, new_database: NewDatabase):
    url = new_database()
    with pytest.raises(InvalidInput, match="there is no memory in"):
        move(tmp_path / "nowhere", url)
    with pytest.raises(InvalidInput, match="there is no memory in the database"):
        move(url, tmp_path / "target")
    assert not PostgresLedger.exists(url)
    assert list(tmp_path.iterdir()) == []
    for source, target in ((tmp_path / "one", tmp_path / "other"), (url, url)):
        with pytest.raises(InvalidInput, match="is moved from a folder to a URL"):
            move(source, target)


def test_a_folder_that_is_open_is_refused(tmp_path: Path, new_database: NewDatabase):
    url = new_database()
    with CascadeMemory(tmp_path / "first", embedder="hashing") as memory:
        memory.add("a task", "a solution")
        with pytest.raises(StoreError, match="is open; close it everywhere"):
            move(tmp_path / "first", url)
    reader = sqlite3.connect(tmp_path / "first" / "ledger.sqlite3")  # as a process that does not own Chroma
    reader.execute("SELECT count(*) FROM cases").fetchone()
    with pytest.raises(StoreError, match="is in use"):
        move(tmp_path / "first", url)
    reader.close()
    assert move(tmp_path / "first", url)["cases"] == 1


def test_a_database_that_is_open_is_refused(tmp_path: Path, new_database: NewDatabase):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    move(first, url)
    worker = PostgresLedger(url)
    worker.bind(worker.facts.get("embedder"))
    with pytest.raises(StoreError, match="has 1 other connections of cascade-memory, and what they write"):
        move(url, tmp_path / "second")
    assert move(url, tmp_path / "second", while_open=True)["cases"] == 1
    assert worker.namespace("meanwhile", create=True)
    worker.close()
    assert move(url, tmp_path / "third")["cases"] == 1


def test_a_process_that_rested_while_its_database_was_moved_must_open_it_again(tmp_path: Path, new_database: NewDatabase):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    move(first, url)
    worker = PostgresLedger(url)
    worker.bind(worker.facts.get("embedder"))
    with psycopg.connect(url) as connection:  # as after a minute in which nothing was asked
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cascade-memory'"
        connection.execute(f"{query} AND datname = current_database()")
    move(url, tmp_path / "second")
    with pytest.raises(StoreReplaced, match="open it again"):
        worker.namespace("lost otherwise", create=True)
    worker.close()
    with CascadeMemory(url, embedder="hashing") as memory:
        memory.add("another task", "a solution")


def test_nobody_writes_to_a_database_while_it_is_copied(tmp_path: Path, new_database: NewDatabase, monkeypatch):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    move(first, url)
    worker, tried = PostgresLedger(url), []

    def beside(*arguments: object) -> dict[str, int]:
        with patience(0.2), pytest.raises(StoreBusy):
            worker.namespace("meanwhile", create=True)
        tried.append(True)
        return greatest_keys(*arguments)

    worker.bind(worker.facts.get("embedder"))
    monkeypatch.setattr(copying, "greatest_keys", beside)
    move(url, tmp_path / "second", while_open=True)
    worker.namespace("afterwards", create=True)
    worker.close()
    assert tried


def test_whoever_has_the_empty_target_open_cannot_write_any_more(tmp_path: Path, new_database: NewDatabase):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    early = PostgresLedger(url)
    early.bind("another embedder")
    move(first, url)
    with pytest.raises(StoreError, match=r"has vectors of|was restored"):
        early.namespace("default 2", create=True)
    early.close()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE case_text SET solution = 'a' || char(0) || 'b'", "case_text 1: solution contains the control character"),
        ("UPDATE event SET payload = 'a' || char(0)", "event 1: payload contains a NUL character"),
        ("UPDATE cases SET query = CAST(x'ff' AS TEXT) WHERE key = 1", "cases 1: query is not UTF-8"),
        ("UPDATE cases SET shown = 'many' WHERE key = 1", "cases 1: shown must be a whole number"),
        (
            "UPDATE episode SET namespace = 77 WHERE key = 1",
            r"is damaged \(the row 1 of episode belongs to no row of namespace\)",
        ),
        ("DELETE FROM solution", r"is damaged \(the row 1 of cases"),
        ("UPDATE episode SET status = 'open'", "episode 1: it is open and has 1 outcomes that stand"),
        ("UPDATE case_vector SET vector = x'00000000'", "case_vector 1: the vector"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, new_database: NewDatabase, change: str, told: str):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing", learn="inline") as memory:
        memory.reward(memory.recall("a task").episode_id, 1.0, solution="a solution")
        engine_of(memory).parts.ledger.facts.note_event("trained", None, {})
    sql(first, change)
    with pytest.raises(StoreCorrupt, match=told) as found:
        move(first, url)
    assert "cascade-memory data doctor" in str(found.value)
    if PostgresLedger.exists(url):
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM cascade_memory.cases").fetchone() == (0,)


def test_what_arrived_differently_is_not_kept(tmp_path: Path, new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch):
    first, url = tmp_path / "first", new_database()
    lived_in(first)

    def careless(connection, table, some):
        insert(connection, table, [(*row[:3], "other", *row[4:]) if table.name == "case_text" else row for row in some])

    monkeypatch.setattr(copying, "insert", careless)
    with pytest.raises(StoreCorrupt, match=r"the rows of case_text in the database .* are not those of .*first: n"):
        move(first, url)
    with pytest.raises(StoreCorrupt):
        move(first, url)  # it is still empty
    monkeypatch.undo()
    move(first, url)
    monkeypatch.setattr(copying, "insert", careless)
    with pytest.raises(StoreCorrupt, match="nothing was moved"):
        move(url, tmp_path / "second")
    assert not (tmp_path / "second" / "ledger.sqlite3").exists()


_SLOW = """
import sys, time
from cascade_memory.assembly.move import move
from cascade_memory.ledger import copying
insert = copying.insert
def slow(*arguments):
    print("inserting", flush=True)
    insert(*arguments)
    time.sleep(0.05)
copying.insert = slow
move(sys.argv[1], sys.argv[2])
"""


def kill_in_the_middle(source: str | Path, target: str | Path, after: int) -> None:
    command = [sys.executable, "-c", _SLOW, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as moving:
        assert moving.stdout is not None
        for _ in range(after):
            assert moving.stdout.readline() == "inserting\n"
        moving.kill()


@pytest.mark.long
def test_a_move_that_is_killed_can_be_repeated(tmp_path: Path, new_database: NewDatabase):
    first, second, url = tmp_path / "first", tmp_path / "second", new_database()
    lived_in(first)
    before = rows(first)
    for after in (1, 9, 20):
        kill_in_the_middle(first, url, after)
    move(first, url)
    for after in (1, 9, 20):
        kill_in_the_middle(url, second, after)
    move(url, second)
    assert rows(first) == rows(second) == before
    assert exported(first) == exported(second)


def test_a_newer_schema_is_refused(tmp_path: Path, new_database: NewDatabase):
    first, url = tmp_path / "first", new_database()
    CascadeMemory(first, embedder="hashing").close()
    PostgresLedger(url).close()
    sql(first, "PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew, match="upgrade cascade-memory"):
        move(first, url)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE cascade_memory.version SET number = 99")
    with pytest.raises(SchemaTooNew, match="upgrade cascade-memory"):
        move(url, tmp_path / "second")


def test_the_command(tmp_path: Path, new_database: NewDatabase, capsys: pytest.CaptureFixture[str]):
    first, url = tmp_path / "first", new_database()
    with CascadeMemory(first, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    assert main(["data", "move", str(first), url]) == 0
    assert "moved and compared: 1 cases, 0 episodes, 0 outcomes" in (said := capsys.readouterr().out)
    assert "The source is unchanged" in said
    assert main(["data", "move", url, str(tmp_path / "second"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == 1
    assert main(["data", "move", str(first), url]) == 2
    assert "there is a memory in the database" in capsys.readouterr().err
