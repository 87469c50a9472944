"""Ledgers whose tables somebody has changed: refused, or in every way like one of the library's own."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_files import tried
from intensity import times
from learned_folder import OnDisk, sql
from schema_mutations import bases, mutated, mutated_header, normal_form

from cascade_memory import restore
from cascade_memory.errors import CascadeError, StoreCorrupt
from cascade_memory.ledger import running
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.testing import LedgerContract

HOW_MANY = times(newcomer=20, ci=40, matrix=2_500)
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(7_200)]


def _served(use: Callable[[], object]) -> bool:
    """Say whether a ledger was taken, not refused with a sentence."""
    return tried(lambda: use() and None) == "served"


class _Copied(LedgerContract):
    """The contract of ledgers, on copies of one file."""

    TTL = 1_000.0

    def __init__(self, original: Path, place: Path, patch: pytest.MonkeyPatch) -> None:
        self._original, self._place, self._patch = original, place, patch
        self._made: list[SQLiteLedger] = []

    def make(self) -> Ledger:
        file = shutil.copy(self._original, self._place / f"{len(self._made)}.sqlite3")
        self._made.append(SQLiteLedger(Path(file)))
        return self._made[-1]

    def wait(self, seconds: float) -> None:
        moment = running.clock() + seconds
        self._patch.setattr(running, "clock", lambda: moment)

    def close(self) -> None:
        for ledger in self._made:
            ledger.close()


def _holds(original: Path, place: Path) -> None:
    """Run the tests of the contract on copies of a ledger: all, if thousands of mutations are tried."""
    tests = [name for name in dir(LedgerContract) if name.startswith("test_")]
    for test in tests if HOW_MANY >= 1_000 else tests[::20]:
        with tempfile.TemporaryDirectory(dir=place) as made, pytest.MonkeyPatch.context() as patch:
            contract = _Copied(original, Path(made), patch)
            with contextlib.closing(contract):
                getattr(contract, test)()


@pytest.mark.slow
def test_a_changed_schema_is_refused_or_answers_as_the_library_s_own(place: Path):
    """Opened where it stands, and restored: the same verdict, and each different ledger that is taken keeps the contract."""
    originals, taken = bases(place), dict[object, Path]()
    for number in range(2 * HOW_MANY):
        rng = random.Random(f"schema {number}")
        with tempfile.TemporaryDirectory(dir=place) as made:
            folder = Path(made)
            (folder / "backup").mkdir()
            file = Path(shutil.copy(rng.choice(originals), folder / "backup" / "ledger.sqlite3"))
            how = mutated(file, rng)
            shutil.copytree(file.parent, folder / "opened")
            copy = folder / "opened" / "ledger.sqlite3"
            opens = _served(lambda copy=copy: SQLiteLedger(copy).close())
            restores = _served(lambda folder=folder: restore(folder / "backup", folder / "restored"))
            assert opens or not restores, how  # whether the rows and pages are in order, only a restore looks
            for served, one in ((opens, copy), (restores, folder / "restored" / "ledger.sqlite3")):
                if served:
                    SQLiteLedger(one).close()  # and upgrade it
                    taken.setdefault(normal_form(one), Path(shutil.copy(one, place / f"taken {len(taken)}")))
    assert len(taken) >= 2  # a new one, and one that was upgraded
    for form in taken.values():
        _holds(form, place)


def test_a_changed_header_is_refused_by_a_restore_or_makes_no_difference(place: Path):
    originals, taken = bases(place), dict[object, Path]()
    for number in range(HOW_MANY):
        rng = random.Random(f"header {number}")
        with tempfile.TemporaryDirectory(dir=place) as made:
            folder = Path(made)
            file = Path(shutil.copy(rng.choice(originals), folder / "ledger.sqlite3"))
            mutated_header(file, rng)
            restored = folder / "restored" / "ledger.sqlite3"
            if _served(lambda folder=folder: restore(folder, folder / "restored")):
                if not _served(lambda restored=restored: SQLiteLedger(restored).close()):
                    continue  # an encoding that there is not lets nobody upgrade it
                taken.setdefault(normal_form(restored), Path(shutil.copy(restored, place / f"taken {len(taken)}")))
    for form in taken.values():
        _holds(form, place)


# -- what a mutation hits seldom -----------------------------------------------------------------------------------------

_MOVED = {
    "a UNIQUE that moved": ("recall", ("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL"), ("policy TEXT", "policy TEXT UNIQUE")),
    "an id that need not be one": (
        "episode",
        ("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL"),
        ("query TEXT", "query TEXT UNIQUE"),
    ),
    "columns of a constraint": ("cases", ("UNIQUE (namespace, pair)", "UNIQUE (pair, namespace)")),
    "a default": ("episode", ("DEFAULT 'live'", "DEFAULT 'LIVE'")),
    "a name in capitals": ("cases", ("  id TEXT", "  ID TEXT")),
    "another space": ("cases", ("copies INTEGER", "copies\N{NO-BREAK SPACE} INTEGER")),
    "a name that looks the same": ("recall", ("  k INTEGER", "  \N{KELVIN SIGN} INTEGER")),
    "columns in another order": ("change", ("ref INTEGER NOT NULL,\n  id TEXT", "id TEXT,\n  ref INTEGER NOT NULL")),
    "a check": ("field", ("value NOT NULL,", "value NOT NULL CHECK (value <> 'ann'),")),
    "a table with hidden keys": ("field", ("WITHOUT ROWID", "")),
    "a reference": ("outcome", ("REFERENCES episode(key)", "REFERENCES cases(key)")),
    "a long statement": ("event", ("CREATE TABLE event (", f"CREATE TABLE event (/*{'x' * 50_000}*/")),
}


def _rewrite(file: Path, table: str, *changes: tuple[str, str]) -> None:
    """Change the statement that made a table, as only an editor of the file can."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    (statement,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ? AND type = 'table'", (table,)).fetchone()
    for old, new in changes:
        assert old in statement
        statement = statement.replace(old, new, 1)
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ? AND type = 'table'", (statement, table))
    connection.close()


@pytest.mark.parametrize("what", _MOVED)
def test_the_same_words_in_another_order_are_not_the_same_table(tmp_path: Path, what: str):
    file = tmp_path / "ledger.sqlite3"
    SQLiteLedger(file).close()
    _rewrite(file, *_MOVED[what])
    for use in (lambda: restore(tmp_path, tmp_path / "restored"), lambda: SQLiteLedger(file)):
        with pytest.raises(StoreCorrupt, match="does not have the structure of a cascade-memory ledger"):
            use()


def test_a_trigger_that_passes_for_a_table_is_refused(tmp_path: Path):
    file = tmp_path / "ledger.sqlite3"
    SQLiteLedger(file).close()
    evil = "CREATE TRIGGER cases AFTER INSERT ON cases BEGIN DELETE FROM outcome; END"
    _insert(file, -1, "table", "cases", "cases", 0, evil)
    for use in (lambda: restore(tmp_path, tmp_path / "restored"), lambda: SQLiteLedger(file)):
        with pytest.raises(StoreCorrupt):
            use()


def _insert(file: Path, *row: object) -> None:
    """Write a row that names a table, an index or a trigger."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_master (rowid, type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.close()


def test_an_index_that_does_not_fit_its_table_is_refused_in_a_backup_and_mended_where_it_stands(
    backup: Path, folder: Path, on_disk: OnDisk, tmp_path: Path
):
    for place in (backup, folder):
        connection = sqlite3.connect(place / "ledger.sqlite3", isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        index = "type = 'index' AND name = 'cases_verified'"
        row = connection.execute(
            f"SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE {index}"
        ).fetchone()
        connection.execute(f"DELETE FROM sqlite_master WHERE {index}")
        connection.close()
        sql(place, "UPDATE cases SET verified_run = verified_run + 100 WHERE key = 1")
        connection = sqlite3.connect(place / "ledger.sqlite3", isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_master (rowid, type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        connection.close()
    with pytest.raises(StoreCorrupt, match="is damaged"):
        restore(backup, tmp_path / "restored")
    memory = on_disk()
    assert [check.name for check in memory.data.examine() if not check.ok] == ["ledger"]
    memory.data.examine(fix=True)
    assert all(check.ok for check in memory.data.examine())


def test_a_restored_ledger_has_no_advice_of_others_on_how_to_search(backup: Path, tmp_path: Path):
    sql(backup, "ANALYZE", "UPDATE sqlite_stat1 SET stat = '1 1 1 1'")
    restore(backup, tmp_path / "restored")
    with contextlib.closing(sqlite3.connect(tmp_path / "restored" / "ledger.sqlite3")) as restored:
        assert not restored.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'sqlite_stat%'").fetchone()


def test_a_header_that_lets_nobody_write_is_no_raw_error(backup: Path, tmp_path: Path):
    content = bytearray((backup / "ledger.sqlite3").read_bytes())
    content[18] = 3
    (backup / "ledger.sqlite3").write_bytes(content)
    with pytest.raises(CascadeError, match="restore another backup"):
        restore(backup, tmp_path / "restored")
