"""Somebody has put files where SQLite, Chroma or this library would act on them: nothing outside is deleted, made or changed.

Nothing hangs, and a backup that is restored over the folder mends it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import planted_files
import pytest
from intensity import times
from planted_files import MAGIC, header, naming

from cascade_memory.domain.sqlite_files import check_files, connect
from cascade_memory.errors import StoreCorrupt

pytestmark = [pytest.mark.fuzz, pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")]
HOW_MANY = times(newcomer=8, ci=40, matrix=2_500)
_PATIENCE = 120.0  # seconds for one door, on a busy machine


def _lines(command: list[str]) -> Iterator[str]:
    """Yield what a process prints; fail if it says nothing for long, with what it was doing."""
    said: queue.Queue[str | None] = queue.Queue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        output = child.stdout
        assert output is not None

        def listen() -> None:
            for line in iter(lambda: output.read(1), ""):
                said.put(line)
            said.put(None)

        threading.Thread(target=listen, daemon=True).start()
        line = ""
        try:
            while (letter := said.get(timeout=_PATIENCE)) is not None:
                line += letter
                if letter == "\n":
                    yield line
                    line = ""
        except queue.Empty:
            pytest.fail(f"this hangs: {line}")
        finally:
            child.kill()
    assert not line, f"this ended the process: {line}"


def _try_all(root: Path, *share: str) -> list[str]:
    lines = list(_lines([sys.executable, planted_files.__file__, str(root), *share]))
    wrong = [line for line in lines if "\tWRONG" in line]
    assert not wrong, "".join(wrong[:20])
    return lines


@pytest.mark.slow
def test_nothing_outside_is_touched_whatever_lies_in_a_folder(tmp_path: Path):
    lines = _try_all(tmp_path, "5", "110")
    assert len(lines) > 20
    assert any("\tserved" not in line for line in lines)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_planted_file_in_every_door(tmp_path: Path):
    lines = _try_all(tmp_path, "0", "1")
    assert len(lines) == len(list(planted_files.combinations()))


# -- the journal of SQLite -----------------------------------------------------------------------------------------------


def _database(place: Path) -> Path:
    with contextlib.closing(sqlite3.connect(place / "a.sqlite3")) as made:
        made.execute("CREATE TABLE t (x)")
    return place / "a.sqlite3"


def test_the_attack_is_real_sqlite_deletes_what_a_journal_names(tmp_path: Path):
    (victim := tmp_path / "victim").write_text("mine")
    database = _database(tmp_path)
    journal = tmp_path / "a.sqlite3-journal"
    journal.write_bytes(header(database.stat().st_size // 4096) + naming(victim))
    with pytest.raises(StoreCorrupt, match="names another file"):
        connect(database)
    assert victim.exists()
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
    assert not victim.exists()


def test_the_journal_of_a_process_that_was_killed_is_rolled_back(tmp_path: Path):
    database = _database(tmp_path)
    script = """if True:
        import os, sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("DROP TABLE t") if sys.argv[2] == "less" else None
        connection.executemany("INSERT INTO u VALUES (?)", [("x" * 9000,)] * 200) if sys.argv[2] == "more" else None
        os._exit(9)
    """
    for how in ("less", "more", "neither"):
        with contextlib.closing(connect(database)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS u (x)")
            connection.execute("INSERT INTO u VALUES (zeroblob(500000))")
            connection.execute("DELETE FROM u")
        assert subprocess.run([sys.executable, "-c", script, str(database), how], check=False).returncode == 9
        assert (tmp_path / "a.sqlite3-journal").stat().st_size > 512
        check_files(database)
        with contextlib.closing(connect(database)) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_no_text_of_anybody_can_look_like_the_end_of_such_a_journal():
    for cut in range(len(MAGIC) - 3):  # a journal that was cut off may end in the page of a text
        with pytest.raises(UnicodeDecodeError):
            MAGIC[cut : cut + 4].decode()


def test_two_names_are_no_fault_where_a_database_is_only_read(tmp_path: Path):
    database = _database(tmp_path)
    os.link(database, tmp_path / "daily.1")  # as in backups that share what did not change
    with contextlib.closing(connect(database, "mode=ro")) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    with pytest.raises(StoreCorrupt, match="hard link"):
        connect(database)


def _log(rng: random.Random, page: int) -> bytes:
    """Return a write-ahead log whose checksums are right, but which says what no SQLite would."""

    def summed(data: bytes, before: tuple[int, int]) -> tuple[int, int]:
        one, two = before
        for at in range(0, len(data), 8):
            one = (one + int.from_bytes(data[at : at + 4], "big") + two) % 2**32
            two = (two + int.from_bytes(data[at + 4 : at + 8], "big") + one) % 2**32
        return one, two

    def numbers(*given: int) -> bytes:
        return b"".join(number.to_bytes(4, "big") for number in given)

    head = numbers(0x377F0683, 3_007_000, rng.choice([page, 512, 65_536]), rng.randrange(5), 1, 2)
    found = summed(head, (0, 0))
    log = head + numbers(*found)
    for _ in range(rng.randrange(4)):
        content = rng.choice([rng.randbytes(page), bytes(page)])
        begins = numbers(rng.choice([0, 1, 2, 2**20, 2**31 - 1, 2**32 - 1]), rng.choice([0, 1, 2**20, 2**31, 2**32 - 1]))
        found = summed(begins + content, found)
        log += begins + numbers(1, 2, *found) + content
    return log


def _journal(rng: random.Random, page: int, victim: Path) -> bytes:
    pages = rng.choice([0, 1, 2, 3, 100, 2**20, 2**31, 2**32 - 1])
    odd = [0, 1, 31, 32, 512, 4096, 65_536, 2**31, 2**32 - 1]
    found = header(
        pages, records=rng.choice([0, 1, 2**32 - 1]), page=rng.choice([page, *odd]), sector=rng.choice([512, 512, 4096])
    )
    for _ in range(rng.randrange(3)):
        found += rng.choice([1, 2, 2**20, 2**32 - 1]).to_bytes(4, "big") + rng.randbytes(page + 4)
    end = naming(victim)
    return found + rng.choice([b"", end, end[: -rng.randrange(1, 20)], end + b"x", MAGIC, bytes(8) + MAGIC])


def test_no_forged_journal_log_or_shared_memory_touches_anything_else(tmp_path: Path):
    for seed in range(HOW_MANY):
        rng, place = random.Random(seed), tmp_path / str(seed)
        place.mkdir()
        (victim := place / "victim").write_text("mine")
        database = _database(place)
        if rng.random() < 0.5:
            with contextlib.closing(sqlite3.connect(database)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
        forged = {"-journal": _journal(rng, 4096, victim), "-wal": _log(rng, 4096), "-shm": rng.randbytes(32_768)}
        for end, content in forged.items():
            if rng.random() < 0.6:
                (place / f"a.sqlite3{end}").write_bytes(content)
        for option in ("mode=ro", ""):
            with (
                contextlib.suppress(sqlite3.DatabaseError, StoreCorrupt),
                contextlib.closing(connect(database, option)) as made,
            ):
                made.execute("SELECT * FROM t").fetchall()
                made.execute("PRAGMA journal_mode = DELETE").fetchall()
        assert victim.read_text() == "mine", seed
        assert {file.name.partition("-")[0] for file in place.iterdir()} == {"victim", "a.sqlite3"}
        assert sum(file.stat().st_size for file in place.iterdir()) < 2**20, seed
        shutil.rmtree(place)
