"""A memory in a database behaves as one in a folder does, for any number of processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import inside
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli.main import main
from cascade_memory.errors import CascadeError, InvalidInput, StoreError


def _taught(url: str, times: int = 8) -> list[str]:
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        ids: list[str] = []
        for number in range(times):
            found = memory.recall(f"heat the cup number {number}")
            ids.append(found.episode_id)
            memory.reward(found.episode_id, 1.0, solution="use the microwave")
        return ids


def test_what_was_acknowledged_is_there_when_it_is_opened_again(new_database: Callable[[], str]):
    url = new_database()
    _taught(url)
    with CascadeMemory(url) as memory:
        assert memory.stats().as_dict()["cases"] == 8
        assert memory.recall("heat the cup number 3").cases[0].solution == "use the microwave"
        assert "secret" not in repr(memory)


def test_another_handle_sees_a_case_within_a_second_and_its_own_at_once(new_database: Callable[[], str]):
    url = new_database()
    with CascadeMemory(url, embedder="hashing") as one:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with suppress(BaseException), CascadeMemory(url, embedder="hashing") as other:
                other.add("cool a mug", "put it into the fridge")
                os.write(writer, b"x")
            os._exit(0)
        assert os.read(reader, 1) == b"x"
        one.add("heat a mug", "use the microwave")
        assert one.recall("heat a mug").cases[0].solution == "use the microwave"
        assert one.recall("cool a mug").cases[0].solution == "put it into the fridge"  # reading its own brought the other's
        os.waitpid(child, 0)


def test_a_second_memory_begins_with_what_the_first_has_learned(new_database: Callable[[], str]):
    url = new_database()
    _taught(url)
    with CascadeMemory(url, learn="off") as memory:
        assert inside.state_of(memory).policy.rewards == 8


def test_what_was_forgotten_is_in_no_row(new_database: Callable[[], str]):
    import psycopg

    url = new_database()
    _taught(url)
    with CascadeMemory(url) as memory:
        receipt = memory.forget(everything=True, purge=True)
    assert receipt.cases == 8
    assert not receipt.purged  # the files, the log and the backups are the database's own
    assert any("VACUUM FULL" in one for one in receipt.stale)
    with psycopg.connect(url) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'cascade_memory'"
        for (table,) in connection.execute(query).fetchall():
            rows = connection.execute(f"SELECT t::text FROM cascade_memory.{table} AS t").fetchall()  # type: ignore[arg-type]
            assert not any("microwave" in row[0] or b"microwave".hex() in row[0] for row in rows), table


def test_the_command_line_takes_a_url(new_database: Callable[[], str], capsys: pytest.CaptureFixture[str]):
    url = new_database()
    assert main(["show", "stats", url]) == 2
    assert "there is no memory in the database" in capsys.readouterr().err
    _taught(url)
    assert main(["show", "stats", url]) == 0
    assert "8" in capsys.readouterr().out
    assert main(["data", "doctor", url]) == 0


def test_the_environment_names_the_place(
    new_database: Callable[[], str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert main(["show", "stats"]) == 2
    assert "CASCADE_MEMORY_URL" in capsys.readouterr().err
    url = new_database()
    _taught(url)
    monkeypatch.setenv("CASCADE_MEMORY_URL", url)
    assert main(["show", "report"]) == 0


@pytest.mark.parametrize("url", ["mysql://u@h/d", "postgresql://[", "http://example.org", "postgresql://u@h/d?nonsense=1"])
def test_a_wrong_url_is_refused_with_a_sentence(url: str):
    with pytest.raises(InvalidInput, match="postgresql://"):
        CascadeMemory(url, embedder="hashing")


def test_an_unreachable_database_is_named_without_its_password(tmp_path: object):
    with pytest.raises(StoreError) as raised:
        CascadeMemory(f"postgresql://ann:s3cret@/agents?host={tmp_path}", embedder="hashing")
    assert "the database agents at" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_no_rights_are_named(new_database: Callable[[], str]):
    import psycopg

    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        with suppress(psycopg.Error):
            connection.execute("CREATE ROLE guest LOGIN")
        name = connection.info.dbname
        connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC; GRANT CONNECT ON DATABASE {name} TO guest")  # type: ignore[arg-type]
    with pytest.raises(CascadeError, match="rights"):
        CascadeMemory(url.replace("cascade@", "guest@"), embedder="hashing")
