"""What a URL, a database's settings or a busy process may do to a memory in PostgreSQL, and what it may not."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.assembly.database import Database
from cascade_memory.assembly.place import place_of
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ports.snapshots import Snapshot
from cascade_memory.snapshots import SnapshotsInRows


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:se/cret@127.0.0.1/agents",
        "postgresql://ann:se@cret@127.0.0.1/agents",
        "postgresql://ann:secret@/@h/agents",
        "postgresql://ann:secret",
        "postgresql:/ann:secret@h/agents",
        "postgres:ann:secret@h/agents",
        Path("postgresql://ann:secret@h/agents"),
    ],
    ids=str,
)
def test_a_password_that_the_url_hides_badly_is_refused_and_not_shown(url: str | Path):
    with pytest.raises(InvalidInput) as refused:
        CascadeMemory(url, embedder="hashing")
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("postgresql://ann:s%40%2Fe@h:5433/agents", "the database agents at h"),
        ("postgresql://ann@h1:1,h2:2/agents", "the database agents at h1,h2"),
        ("postgresql://ann:se?cret@h/agents", "the database agents at h"),
        ("postgresql:///agents?host=/run/x", "the database agents at /run/x"),
        ("postgresql:///agents?host=@pg", "the database agents at @pg"),
        ("postgresql://h/agents?password=a@b", "the database agents at h"),
    ],
)
def test_what_is_written_well_is_taken(url: str, named: str):
    assert str(place_of(url)) == named


def test_two_services_are_two_places_and_a_password_makes_none():
    def key(url: str) -> str:
        return Database(url).key

    assert key("postgresql:///?service=a") != key("postgresql:///?service=b")
    assert key("postgresql://ann:1@h/a") == key("postgresql://ann:2@h/a")


def test_who_has_waited_for_the_turn_sees_what_was_written_meanwhile(new_database: Callable[[], str]):
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")  # type: ignore[arg-type]
    ledger, seen = PostgresLedger(url), list[object]()

    def second() -> None:
        with ledger.connections.write(durable=True) as turn:
            seen.append(turn.execute("SELECT value FROM meta WHERE key = 'probe'").fetchone())

    with ledger.connections.write(durable=True) as turn:
        turn.execute("SELECT 1").fetchone()
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.5)
        turn.execute("INSERT INTO meta (key, value) VALUES ('probe', '1')")
    thread.join()
    ledger.close()
    assert seen[0] is not None


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    yield
    for one in taken:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_process_with_many_open_files_can_use_it(new_database: Callable[[], str]):
    with CascadeMemory(new_database(), embedder="hashing") as memory:
        memory.add("heat a cup", "use the microwave")
        assert memory.recall("heat a cup").error is None


def test_a_snapshot_that_one_worker_cannot_load_stays_for_the_others(new_database: Callable[[], str]):
    with contextlib.closing(PostgresLedger(new_database())) as ledger:
        store = SnapshotsInRows(ledger.snapshots)
        for namespace in (1, 2):
            one = Snapshot(namespace=namespace, seq=5, known=5, policy="policy", encoder="encoder", state={"w": np.ones(3)})
            store.save(one, lambda path, text=str(namespace): path.write_text(text))
        barrier = threading.Barrier(2)

        def load(namespace: int) -> str:
            found = store.latest(namespace, policy="policy", encoder="encoder", until=9)
            assert found is not None
            assert found.weights is not None
            barrier.wait(10)
            text = found.weights.read_text()
            store.remove(found)
            return text

        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(load, (1, 2))) == ["1", "2"]
        assert [one.namespace for one in store.every()] == [1, 2]
