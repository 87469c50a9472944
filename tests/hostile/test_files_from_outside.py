"""Ledgers and backups that somebody else has written into: looked at before they are used, and written with care."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from inside import engine_of
from learned_folder import OnDisk, sql, teach

from cascade_memory import CascadeMemory, restore
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.audit import faults

SCHEMA = {
    "trigger": "CREATE TRIGGER evil AFTER INSERT ON cases BEGIN UPDATE case_text SET solution = 'rm -rf /'; END",
    "view": "CREATE VIEW evil AS SELECT * FROM cases",
    "table evil": "CREATE TABLE evil (x)",
    "index evil": "CREATE INDEX evil ON cases(query)",
    "virtual table": "CREATE VIRTUAL TABLE evil USING fts5(x)",
    "table cases": "ALTER TABLE cases ADD COLUMN evil INTEGER CHECK (evil IS NULL)",
    "table 'event'": "ALTER TABLE event ADD COLUMN evil INTEGER GENERATED ALWAYS AS (key + 1)",
    "index cases_namespace": "DROP INDEX cases_namespace",
}


@pytest.mark.parametrize("named", SCHEMA)
def test_a_ledger_with_anything_that_is_not_ours_is_refused_by_name(backup: Path, folder: Path, on_disk: OnDisk, named: str):
    try:
        sql(backup, SCHEMA[named])
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no fts5")
    with pytest.raises(StoreCorrupt, match=rf"{named}|'evil'"):
        restore(backup, folder, replace=True)
    with pytest.raises(StoreCorrupt, match=rf"{named}|'evil'"):
        CascadeMemory(backup, embedder="hashing")
    assert on_disk().stats().rewards == 12  # what was there is untouched


def test_advice_that_sqlite_left_on_how_to_search_is_no_reason_to_refuse(folder: Path, on_disk: OnDisk):
    sql(folder, "ANALYZE")
    assert on_disk().recall("task 3 of kind 3").error is None


def test_an_old_ledger_with_a_trigger_is_refused_before_it_is_upgraded(tmp_path: Path):
    import gzip

    old = tmp_path / "old"
    old.mkdir()
    fixture = Path(__file__).parent.parent / "fixtures" / "ledger-v1.sqlite3.gz"
    (old / "ledger.sqlite3").write_bytes(gzip.decompress(fixture.read_bytes()))
    assert restore(old, tmp_path / "fine")["cases"] == 38
    sql(old, "CREATE TRIGGER evil AFTER UPDATE ON cases BEGIN DELETE FROM outcome; END")
    before = (old / "ledger.sqlite3").read_bytes()
    for use in (lambda: CascadeMemory(old), lambda: restore(old, tmp_path / "restored")):
        with pytest.raises(StoreCorrupt, match="trigger 'evil'"):
            use()
    assert (old / "ledger.sqlite3").read_bytes() == before


@pytest.mark.parametrize("name", ["ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-journal", "snapshots", "owner.lock"])
def test_nothing_is_read_or_written_through_a_link(folder: Path, tmp_path: Path, name: str):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (mine := elsewhere / "policy-1-0000000000000001.npz").write_text("mine")
    if name == "ledger.sqlite3" or name == "snapshots":
        (folder / name).rename(tmp_path / "moved")
    else:
        (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(elsewhere if name == "snapshots" else tmp_path / "moved" if name == "ledger.sqlite3" else mine)
    with pytest.raises(StoreError, match=r"link|cannot open"):
        CascadeMemory(folder, embedder="hashing")
    assert mine.read_text() == "mine"


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(folder: Path, backup: Path, on_disk: OnDisk, tmp_path: Path):
    os.mkfifo(backup / "snapshots" / "policy-1-0000000000000099.npz")
    assert restore(backup, tmp_path / "restored")["outcomes"] == 12
    assert not (tmp_path / "restored" / "snapshots" / "policy-1-0000000000000099.npz").exists()
    (folder / "ledger.sqlite3-wal").unlink(missing_ok=True)
    os.mkfifo(folder / "ledger.sqlite3-wal")
    with pytest.raises(StoreCorrupt, match="a pipe"):
        on_disk()


def test_what_links_lead_to_does_not_get_into_a_backup_or_out_of_one(on_disk: OnDisk, folder: Path, tmp_path: Path):
    (secret := tmp_path / "secret").write_text("secret")
    memory = on_disk()
    (folder / "snapshots" / "policy-1-0000000000000098.npz").symlink_to(secret)
    (folder / "snapshots" / "notes.txt").write_text("somebody's")
    memory.data.backup(tmp_path / "backup")
    (copied,) = (tmp_path / "backup" / "snapshots").iterdir()
    assert copied.read_bytes() == (folder / "snapshots" / copied.name).read_bytes()
    (tmp_path / "backup" / "snapshots" / "policy-1-0000000000000097.npz").symlink_to(secret)
    restore(tmp_path / "backup", tmp_path / "restored")
    assert all(file.is_file() and not file.is_symlink() for file in (tmp_path / "restored" / "snapshots").iterdir())
    assert secret.read_text() == "secret"


# -- rows ----------------------------------------------------------------------------------------------------------------

ROWS = {
    "a vector of another length": "UPDATE case_vector SET vector = x'00000000' WHERE key = 1",
    "a vector that is a million long": "UPDATE case_vector SET vector = zeroblob(length(vector)) WHERE key = 1",
    "metadata that is a list": "UPDATE case_text SET metadata = '[1]' WHERE key = 1",
    "metadata that is not JSON": "UPDATE case_text SET metadata = '{' WHERE key = 1",
    "a trajectory that is none": "UPDATE case_text SET solution_kind = 'trajectory', solution = '{\"steps\": 5}' WHERE key = 1",
    "a query that is bytes": "UPDATE cases SET query = x'00ff' WHERE key = 1",
    "a query that is not UTF-8": "UPDATE cases SET query = CAST(x'ff80' AS TEXT) WHERE key = 1",
    "a count that is a text": "UPDATE cases SET shown = 'x' WHERE key = 1",
    "a case that was always right": "UPDATE cases SET succeeded = 1e300 WHERE key = 1",
    "a time that is none": "UPDATE cases SET verified_at = 9e999 WHERE key = 1",
    "features that are huge": "UPDATE recall SET features = x'ffff7f7f' WHERE key = 5",
    "candidates of half a number": "UPDATE recall SET candidates = x'00' WHERE key = 5",
    "a choice beyond the candidates": "UPDATE recall SET chosen = x'ffffffffffffff00' WHERE key = 5",
    "an outcome beyond one": "UPDATE outcome SET value = 7 WHERE key = 3",
    "an outcome that is a text": "UPDATE outcome SET value = 'good' WHERE key = 3",
    "an episode that is settled by nobody": "UPDATE outcome SET withdrawn_at = 5 WHERE key = 3",
    "a line of the log that says nothing": "UPDATE change SET kind = 'x', ref = 'y' WHERE seq = 2",
    "a digest that is none": "UPDATE solution SET digest = 'x' WHERE id = 1",
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_that_cannot_be_used_is_refused_in_a_backup_and_mended_where_it_stands(
    backup: Path, folder: Path, on_disk: OnDisk, tmp_path: Path, row: str
):
    sql(backup, ROWS[row])
    with pytest.raises(StoreCorrupt, match="cannot be used"):
        restore(backup, tmp_path / "restored")
    sql(folder, ROWS[row])
    memory = on_disk()
    assert memory.recall("task 2 of kind 2").error is None
    assert [check.name for check in memory.data.examine() if not check.ok][:1] == ["rows that cannot be used"]
    mended = {check.name: check for check in memory.data.examine(fix=True)}
    assert mended["rows that cannot be used"].detail.startswith("mended: ")
    assert all(check.ok for check in mended.values())
    assert memory.stats().cases >= 8  # nothing but the row that was hit
    recall = memory.recall("task 3 of kind 3")
    assert recall.error is None
    assert memory.reward(recall.episode_id, 1.0, solution="solution 3")
    memory.forget(memory.add("new", "case"))
    memory.data.backup(tmp_path / "again")


def test_the_newest_episode_of_a_conversation_is_found_though_its_text_is_no_text(on_disk: OnDisk, tmp_path: Path):
    memory = on_disk()
    episode = memory.recall("task", thread_id="mine").episode_id
    memory.close()
    sql(tmp_path / "memory", "UPDATE episode SET query = CAST(x'74ff' AS TEXT)")
    found = on_disk().episodes.latest("mine")
    assert found is not None
    assert (found.id, found.query) == (episode, "t\N{REPLACEMENT CHARACTER}")


def test_a_case_keeps_what_it_says_where_only_numbers_were_lost(folder: Path, on_disk: OnDisk):
    sql(
        folder,
        "UPDATE case_vector SET vector = zeroblob(8) WHERE key = 1",
        "UPDATE cases SET shown = 'x', pair = 'forged', verified_at = -1 WHERE key = 2",
    )
    memory = on_disk()
    assert memory.recall("task 1 of kind 1").error is None
    assert memory.health().failures["rows"] == 1
    cases = memory.stats().cases
    memory.data.examine(fix=True)
    assert memory.stats().cases == cases
    assert memory.cases.search("task 1 of kind 1").cases[0].similarity == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
def test_a_large_ledger_is_looked_at_in_seconds():
    from cascade_memory.encoders.hashing import HashingEmbedder

    with CascadeMemory(embedder=HashingEmbedder(64), learn="off") as memory:
        memory.add([(f"task {i}", f"solution {i % 50}", {"n": i}) for i in range(4_000)], progress=False)
        with engine_of(memory).parts.ledger.connections.read() as connection:
            began = time.process_time()
            assert faults(connection, 10) == []
            assert (time.process_time() - began) / 4_000 < 5e-4  # 100,000 cases in well under a minute on any machine


# -- writing them --------------------------------------------------------------------------------------------------------


def test_a_backup_touches_no_folder_of_somebody_else(on_disk: OnDisk, tmp_path: Path):
    memory = on_disk()
    memory.add("q", "s")
    (tmp_path / "nightly.unfinished").mkdir()
    (tmp_path / "nightly.unfinished" / "mine").write_text("mine")
    memory.data.backup(tmp_path / "nightly")
    assert (tmp_path / "nightly.unfinished" / "mine").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memory", "nightly", "nightly.unfinished"]


def test_of_two_backups_at_once_to_one_place_exactly_one_succeeds(on_disk: OnDisk, tmp_path: Path):
    memory = on_disk()
    teach(memory, 3)
    for turn in range(8):
        target, results = tmp_path / f"backup {turn}", []
        start = threading.Barrier(3)

        def take(target: Path = target, results: list[object] = results, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                results.append(memory.data.backup(target))
            except InvalidInput as error:
                results.append(str(error))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(result, dict) for result in results) == 1
        assert all("exists already" in result for result in results if isinstance(result, str))
        assert len(results) == 3
    assert not list(tmp_path.glob("*.unfinished"))


def test_an_export_that_fails_leaves_what_was_there(on_disk: OnDisk, tmp_path: Path, monkeypatch):
    memory = on_disk()
    memory.add([("q", "s"), ("q2", "s2")])
    target = tmp_path / "export.jsonl"
    target.write_text("the one of yesterday")

    def broken():
        yield {"kind": "case"}
        raise StoreUnwritable("the disk went away while this was read")

    monkeypatch.setattr(engine_of(memory).parts.ledger.archive, "dump", broken)
    with pytest.raises(StoreUnwritable):
        memory.data.export(target)
    assert target.read_text() == "the one of yesterday"
    monkeypatch.undo()
    memory.data.export(target)
    assert target.read_text().count("\n") == 4  # the header, two cases, and the entry of the audit log
    assert sorted(file.name for file in tmp_path.iterdir()) == ["export.jsonl", "memory"]
