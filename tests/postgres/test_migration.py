"""However many processes start at once, and however they die, a database has one good schema."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from cluster import Cluster

from cascade_memory import CascadeMemory
from cascade_memory.assembly.move import move
from cascade_memory.cli import main
from cascade_memory.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreReplaced, StoreUnwritable
from cascade_memory.ledger.postgres import migration, steps
from cascade_memory.ledger.postgres.ledger import PostgresLedger

NewDatabase = Callable[[], str]

# Opens the ledger when told to; with a number of seconds, the server rests so long after each table that it makes.
_STARTER = """
import sys
from cascade_memory.ledger.postgres import migration, steps
from cascade_memory.ledger.postgres.ledger import PostgresLedger
if rest := float(sys.argv[2]):
    made, pause = steps.step_after, f");\\nSELECT pg_sleep({rest});\\n"
    steps.step_after = lambda version: made(version).replace(");\\n", pause)
print("ready", flush=True)
sys.stdin.readline()
ledger = PostgresLedger(sys.argv[1])
assert ledger.namespace("default", create=True) == 1
ledger.close()
"""


def starter(url: str, rest: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _STARTER, url, str(rest)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begin(started: list[subprocess.Popen[str]]) -> None:
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()


def check_good(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        assert migration.differences(migration.shape_of(connection)) == []
        assert connection.execute("SELECT number FROM cascade_memory.version").fetchall() == [(steps.VERSION,)]
        assert connection.execute("SELECT count(*) FROM cascade_memory.meta WHERE key = 'identity'").fetchone() == (1,)


def test_ten_starters_at_once_make_one_schema(new_database: NewDatabase):
    url = new_database()
    started = [starter(url, rest=0.01) for _ in range(10)]
    begin(started)
    for one in started:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said
    check_good(url)


def test_starters_that_are_killed_leave_nothing_behind(new_database: NewDatabase):
    url, rng, nothing = new_database(), random.Random(0), 0
    for _ in range(6):
        both = [starter(url, rest=0.03), starter(url, rest=0.03)]
        begin(both)
        time.sleep(rng.uniform(0.05, 0.5))
        for one in both:
            os.kill(one.pid, signal.SIGKILL)
            one.communicate()
        with psycopg.connect(url) as connection:
            found = migration.shape_of(connection)
        nothing += not found
        assert not found or not migration.differences(found)
    assert nothing >= 3
    PostgresLedger(url).close()
    check_good(url)


@pytest.fixture
def second_step(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A library that is one version ahead."""
    now = steps.VERSION
    monkeypatch.setattr(steps, "VERSION", now + 1)
    monkeypatch.setitem(steps.STEPS, now, "ALTER TABLE cascade_memory.event ADD COLUMN more bigint; SELECT abs(1)")
    yield now
    monkeypatch.undo()


def columns(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        return migration.shape_of(connection)["event"]


def test_an_older_schema_is_upgraded_in_a_step(new_database: NewDatabase, request: pytest.FixtureRequest):
    url = new_database()
    with CascadeMemory(url, embedder="hashing") as memory:
        memory.add("a task", "a solution")
    assert "more" not in columns(url)
    older = PostgresLedger(url)
    before = request.getfixturevalue("second_step")
    with CascadeMemory(url, embedder="hashing") as memory:
        assert memory.stats().cases == 1
    with pytest.raises(StoreReplaced, match="upgraded by a newer version"), older.connections.write(durable=True):
        pass
    older.close()
    assert "more" in columns(url)
    check_good(url)
    steps.VERSION = before
    with pytest.raises(
        SchemaTooNew, match=f"has version {before + 1}, and this library knows versions up to {before}; upgrade"
    ):
        PostgresLedger(url)


def test_a_step_that_fails_changes_nothing(new_database: NewDatabase, second_step: int, monkeypatch: pytest.MonkeyPatch):
    url = new_database()
    steps.VERSION = second_step
    PostgresLedger(url).close()
    steps.VERSION = second_step + 1
    monkeypatch.setitem(steps.STEPS, second_step, steps.STEPS[second_step].replace("abs", "no_such_function"))
    with pytest.raises(StoreError, match="no_such_function"):
        PostgresLedger(url)
    assert "more" not in columns(url)
    monkeypatch.delitem(steps.STEPS, second_step)
    with pytest.raises(StoreCorrupt, match=f"has version {second_step}, from which no step leads to"):
        PostgresLedger(url)


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ("CREATE TABLE cascade_memory.cases (key bigint)", "it has the table cases, but no version"),
        ("CREATE TABLE cascade_memory.version (major text)", "its table version has other columns"),
        ("CREATE TABLE cascade_memory.version (number bigint)", "its version is missing"),
        (
            "CREATE TABLE cascade_memory.version AS SELECT 8::bigint AS number; "
            "CREATE TABLE cascade_memory.cases (key integer, id text)",
            "the table meta is missing; .*",
        ),
    ],
)
def test_a_schema_of_another_program_is_refused(new_database: NewDatabase, there: str, told: str):
    url = new_database()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA cascade_memory; {there}")  # type: ignore[arg-type]
        before = migration.shape_of(connection)
    with pytest.raises(StoreCorrupt, match=rf"is not one that this library made \({told}\)\. Nothing was changed: use another"):
        PostgresLedger(url)
    with psycopg.connect(url) as connection:
        assert migration.shape_of(connection) == before


def test_a_column_that_was_changed_is_named(new_database: NewDatabase):
    url = new_database()
    PostgresLedger(url).close()
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE cascade_memory.event RENAME COLUMN payload TO said")
    with pytest.raises(StoreCorrupt, match=r"the column event\.payload is missing"):
        PostgresLedger(url)


def test_a_database_that_cannot_hold_every_text_is_refused(cluster: Cluster):
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(StoreError, match="has the encoding LATIN1, which cannot hold every text; make one"):
        PostgresLedger(cluster.url("latin"))


# -- for those whose role may not ----------------------------------------------------------------------------------------


@pytest.fixture
def guest(new_database: NewDatabase) -> tuple[str, str]:
    """The URL of an empty database for its owner, and for a role that may make nothing there."""
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'agents'").fetchone() is None:
            connection.execute("CREATE ROLE agents LOGIN")
    return url, url.replace("cascade@", "agents@")


def psql(cluster: Cluster, url: str, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "migrate.sql").write_text(script)
    command = [
        shutil.which("psql") or str(cluster.programs / "psql"),
        "--no-psqlrc",
        "--file",
        str(folder / "migrate.sql"),
        url,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["data", "migrate", "--print-sql", *arguments]) == 0
    return capsys.readouterr().out


def test_others_run_what_is_printed(
    cluster: Cluster, guest: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    owner, url = guest
    with pytest.raises(StoreUnwritable, match="the role 'agents' has no rights to make or change the schema cascade_memory in"):
        PostgresLedger(url)
    script = printed(capsys)
    assert script == printed(capsys, url)
    assert psql(cluster, owner, script, tmp_path).stderr == ""
    check_good(owner)
    with pytest.raises(StoreUnwritable, match=r"the role 'agents' has no rights to use the schema .* GRANT lines"):
        PostgresLedger(url)
    psql(cluster, owner, "".join(f"{line}\n" for line in re.findall(r"^-- (GRANT .*)$", script, re.MULTILINE)), tmp_path)
    with CascadeMemory(tmp_path / "folder", embedder="hashing") as memory:
        memory.add("another task", "another solution")
    move(tmp_path / "folder", url)
    move(url, tmp_path / "back")
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        memory.reward(memory.recall("a task").episode_id, 1.0, solution="a solution", metadata={"user": "ann"})
        receipt = memory.forget(where={"user": "ann"}, purge=True)
        assert receipt.cases == 1
        assert not receipt.purged
        assert "let their owner run VACUUM" in str(receipt.stale)
    again = psql(cluster, owner, script, tmp_path)
    assert "there is a schema cascade_memory already; print the statements again" in again.stderr
    check_good(owner)
    assert "there is nothing to do" in printed(capsys, url)


def test_a_step_is_printed_as_well(
    cluster: Cluster, guest: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], second_step: int
):
    owner, url = guest
    steps.VERSION = second_step
    psql(cluster, owner, printed(capsys), tmp_path)
    psql(
        cluster,
        owner,
        "GRANT USAGE ON SCHEMA cascade_memory TO agents; GRANT SELECT ON cascade_memory.version TO agents",
        tmp_path,
    )
    steps.VERSION = second_step + 1
    with pytest.raises(StoreUnwritable, match="no rights to make or change"):
        PostgresLedger(url)
    script = printed(capsys, url)
    assert "CREATE TABLE" not in script
    assert psql(cluster, owner, script, tmp_path).stderr == ""
    assert "more" in columns(owner)
    again = psql(cluster, owner, script, tmp_path)
    assert f"the schema cascade_memory no longer has version {second_step}" in again.stderr
    check_good(owner)


def test_a_script_that_is_interrupted_changes_nothing(
    cluster: Cluster, guest: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    owner, _ = guest
    script = printed(capsys)
    assert psql(cluster, owner, script[: len(script) // 2], tmp_path).returncode == 0
    PostgresLedger(owner).close()
    check_good(owner)


def test_the_command(new_database: NewDatabase, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    url = new_database()
    assert main(["data", "migrate", url]) == 0
    assert f"has the schema of version {steps.VERSION}; it is new" in capsys.readouterr().out
    assert main(["data", "migrate", url]) == 0
    assert "it was up to date" in capsys.readouterr().out
    assert main(["data", "migrate"]) == 2
    assert "name the URL of the database" in capsys.readouterr().err
    assert main(["data", "migrate", str(tmp_path)]) == 2
    assert "is a folder, which is upgraded when it is opened" in capsys.readouterr().err
