"""A folder that an older version wrote opens in this one, with everything in it."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from failed_once import blame, settlement
from inside import engine_of, state_of
from warning_rows import rows_in

from cascade_memory import CascadeMemory, Retention, restore
from cascade_memory.capabilities.warnings.records import Check
from cascade_memory.domain.failure_warning import Tally
from cascade_memory.errors import SchemaTooNew
from cascade_memory.ledger import running
from cascade_memory.ledger.schema import SCHEMA_VERSION, STATEMENTS

_FIXTURES = Path(__file__).parent / "fixtures"
_VERSION_1, _VERSION_7 = _FIXTURES / "ledger-v1.sqlite3.gz", _FIXTURES / "ledger-v7.sqlite3.gz"


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    return _unpacked(_VERSION_1, tmp_path / "memory")


def _unpacked(written: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / "ledger.sqlite3").write_bytes(gzip.decompress(written.read_bytes()))
    return folder


def _schema(connection: sqlite3.Connection) -> dict[str, set[str]]:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} for table in tables}
    indexes = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}
    return {**found, "indexes": indexes}


def test_a_folder_of_version_1_opens_with_everything_in_it(old_folder: Path):
    with CascadeMemory(old_folder, learn="inline") as memory:
        stats = memory.stats(everywhere=True)
        assert (stats.cases, stats.episodes, stats.rewards, stats.open) == (38, 52, 48, 3)
        assert stats.embedder == "hashing-1:16"
        first = memory.recall("task 3 of kind 3").explain().candidates[0]
        assert (first.query, round(first.similarity, 4)) == ("task 3 of kind 3", 1.0)
        assert state_of(memory).policy.rewards == 42
        assert memory.reward("open-one", 1.0)  # with the solution that was noted then
        assert memory.acting(namespace="tenant/42").cases.search("other 3").cases[0].solution == "other solution 3"
        assert len(memory.cases.search("task", k=32, where={"user": "u1"}).cases) > 5
        memory.sync()
        assert all(check.ok for check in memory.data.examine())


def test_what_a_negative_k_said_a_column_says(old_folder: Path):
    file = old_folder / "ledger.sqlite3"
    with contextlib.closing(sqlite3.connect(file)) as old, old:
        before = old.execute("SELECT key, k FROM recall ORDER BY key").fetchall()
        old.execute("UPDATE recall SET k = -k WHERE key = ?", (before[3][0],))
    restore(old_folder, old_folder.with_name("restored"))  # each row of a backup is checked, as its version wrote it
    CascadeMemory(old_folder).close()
    with contextlib.closing(sqlite3.connect(file)) as upgraded:
        found = upgraded.execute("SELECT key, k, forgot FROM recall ORDER BY key").fetchall()
    assert found == [(key, k, int(place == 3)) for place, (key, k) in enumerate(before)]


def test_an_upgraded_ledger_is_built_like_a_new_one(old_folder: Path):
    CascadeMemory(old_folder).close()
    new = sqlite3.connect(":memory:")
    new.executescript(";".join(STATEMENTS))
    upgraded = sqlite3.connect(old_folder / "ledger.sqlite3")
    try:
        assert _schema(upgraded) == _schema(new)
        assert upgraded.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
        ages = "SELECT count(*) FROM cases WHERE verified_at = created_at AND verified_at > 0"
        assert upgraded.execute(ages).fetchone()[0] == 38
    finally:
        new.close()
        upgraded.close()


def test_an_upgrade_that_is_interrupted_leaves_the_old_ledger(old_folder: Path, monkeypatch):
    before = (old_folder / "ledger.sqlite3").read_bytes()
    from cascade_memory.ledger import upgrade

    broken = {1: (*upgrade.STEPS[1][:3], "SELECT no_such_column FROM cases")}
    monkeypatch.setattr(upgrade, "STEPS", broken)
    with pytest.raises(OSError, match="no_such_column"):
        CascadeMemory(old_folder)
    assert (old_folder / "ledger.sqlite3").read_bytes() == before
    monkeypatch.undo()
    with CascadeMemory(old_folder) as memory:
        assert memory.stats().cases == 33


def test_a_ledger_of_a_newer_version_is_refused_untouched(old_folder: Path):
    connection = sqlite3.connect(old_folder / "ledger.sqlite3")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = (old_folder / "ledger.sqlite3").read_bytes()
    with pytest.raises(SchemaTooNew, match="upgrade cascade-memory"):
        CascadeMemory(old_folder)
    assert (old_folder / "ledger.sqlite3").read_bytes() == before


def _set_back_to_6(file: Path) -> None:
    """Make of a ledger what version 6 wrote."""
    with contextlib.closing(sqlite3.connect(file)) as ledger, ledger:
        for table in ("failure", "checked", "warning_decision"):
            ledger.execute(f"DROP TABLE IF EXISTS {table}")
        ledger.execute("DROP INDEX outcome_counted")
        for table in ("episode", "outcome", "addition", "cases"):
            ledger.execute(f"DROP INDEX {table}_actor")
            for name in ("channel", "actor") if table != "cases" else ("probation", "trust", "channel", "actor"):
                ledger.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        ledger.execute("DROP INDEX expired_evicted")
        for table, name in (("expired", "why"), ("expired", "actor"), ("action", "digest")):
            ledger.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        for key, record in ledger.execute("SELECT key, record FROM expired").fetchall():
            rest = json.loads(record)
            for name in ("actor", "channel", "trust"):
                del rest[name]
            ledger.execute("UPDATE expired SET record = ? WHERE key = ?", (json.dumps(rest), key))
        ledger.execute("PRAGMA user_version = 6")


def test_cases_of_version_6_are_trusted_like_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, sources = tmp_path / "memory", {"agent": 0, "judge": 2, "host": 3, "env": 3, "human": 4}
    with CascadeMemory(folder, embedder="hashing", learn="inline", retention=Retention(ttl=1_000)) as memory:
        memory.add("an old task", "s", source="judge")
        later = running.clock() + 1_001
        monkeypatch.setattr(running, "clock", lambda: later)
        memory.sync()
        engine_of(memory).parts.ledger.expiry.expire(1, 1_000)
        assert len(memory.cases.expired()) == 1
        ids = {source: memory.add(f"task of {source}", "s", source=source) for source in sources}
        memory.acting(actor="ann").cases.hide(ids["env"])
    _set_back_to_6(folder / "ledger.sqlite3")
    assert restore(folder, tmp_path / "restored")["cases"] == 5  # each row of a backup is checked, as its version wrote it
    for place in (folder, tmp_path / "restored"):
        with CascadeMemory(place, embedder="hashing", learn="inline") as memory:
            assert {source: memory.cases.get(case_id).trust for source, case_id in ids.items()} == sources
            assert {(case.actor, case.channel) for case in memory.cases.all()} == {(None, None)}
            assert [(one.actor, one.trust, one.why) for one in memory.sources.diff(0).went] == [(None, 2, "expired")]
            (back,) = memory.cases.bring_back()
            assert (memory.cases.get(back).trust, memory.cases.get(back).actor) == (2, None)
            assert memory.review.audit()
            assert all(check.ok for check in memory.data.examine())
        with contextlib.closing(sqlite3.connect(":memory:")) as new:
            new.executescript(";".join(STATEMENTS))
            with contextlib.closing(sqlite3.connect(place / "ledger.sqlite3")) as upgraded:
                assert _schema(upgraded) == _schema(new)


def test_a_folder_of_version_7_learns_from_failures_from_now_on(tmp_path: Path):
    folder = _unpacked(_VERSION_7, tmp_path / "memory")
    assert restore(folder, tmp_path / "restored")["cases"] == 12  # each row of a backup is checked, as its version wrote it
    for place in (folder, tmp_path / "restored"):
        with CascadeMemory(place, learn="inline") as memory:
            stats = memory.stats(everywhere=True)
            assert (stats.cases, stats.episodes, stats.rewards, stats.open) == (12, 11, 10, 1)
            assert len(list(memory.review.audit())) == 14
            ledger = engine_of(memory).parts.ledger
            assert (rows_in(ledger).failures(1), rows_in(ledger).tallies(1), rows_in(ledger).decisions(1)) == ([], {}, {})
            (waits,) = memory.episodes.all(status="open")
            rows_in(ledger).note_check(Check(episode_id=waits.id, warning="w", warned=True, propensity=0.5, at=1.0))
            ledger.settle(settlement(waits.id, 0.0, blame=blame(), repeats={"w": True}))
            assert [one.query for one in rows_in(ledger).failures(1)] == ["an open task"]
            assert rows_in(ledger).tallies(1) == {"w": Tally(warned=1, warned_repeated=1)}
            assert all(check.ok for check in memory.data.examine())
        with contextlib.closing(sqlite3.connect(":memory:")) as new:
            new.executescript(";".join(STATEMENTS))
            with contextlib.closing(sqlite3.connect(place / "ledger.sqlite3")) as upgraded:
                assert _schema(upgraded) == _schema(new)
