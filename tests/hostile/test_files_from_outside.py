"""What somebody else has written is looked at before it is used: snapshots, backups, ledgers, exports."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, restore
from cascade_memory.domain.digests import digest as text_digest
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.audit import faults
from cascade_memory.snapshots import Snapshot, SnapshotStore
from cascade_memory.snapshots.arrays import digest, read_arrays

OnDisk = Callable[..., CascadeMemory]


def _teach(memory: CascadeMemory, n: int = 12) -> None:
    for i in range(n):
        recall = memory.recall(f"task {i} of kind {i % 4}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 4}", metadata={"user": "ann"})


@pytest.fixture
def folder(on_disk: OnDisk, tmp_path: Path) -> Path:
    """A closed folder that has learned something."""
    memory = on_disk()
    _teach(memory)
    memory.close()
    return tmp_path / "memory"


@pytest.fixture
def backup(on_disk: OnDisk, folder: Path, tmp_path: Path) -> Path:
    memory = on_disk()
    memory.backup(tmp_path / "backup")
    memory.close()
    return tmp_path / "backup"


def _sql(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def _rewritten(file: Path, manifest: dict[str, Any], **arrays: Any) -> None:
    """Write a snapshot as somebody would who knows how: with a digest that is right."""
    state = read_arrays(file)
    said = {**json.loads(state.pop("manifest").tobytes()), **manifest}
    state.update(arrays)
    said["digest"] = digest(state)
    np.savez(file, manifest=np.frombuffer(json.dumps(said).encode(), np.uint8), **state)
    npz = file.with_name(file.name + ".npz")
    if npz.exists():
        npz.replace(file)


# -- snapshots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["absolute", "relative", "link"])
def test_no_manifest_makes_a_memory_delete_or_read_a_file_elsewhere(backup: Path, tmp_path: Path, how: str):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (file,) = (backup / "snapshots").iterdir()
    weights = {"absolute": str(mine), "relative": "../../mine.txt", "link": file.name.replace("policy", "encoder")[:-4]}[how]
    if how == "link":
        weights += "-00000000.safetensors"
        (backup / "snapshots" / weights).symlink_to(mine)
    _rewritten(file, {"weights": weights}, counters=np.full(3, np.nan))
    restore(backup, tmp_path / "restored")
    with CascadeMemory(tmp_path / "restored", embedder="hashing", learn="inline") as memory:
        assert memory.recall("task 3 of kind 3").error is None
        assert state_of(memory).policy.rewards == 12  # from the ledger
        memory.examine(fix=True)
    assert mine.read_text() == "mine"


def test_a_store_deletes_nothing_but_its_own_files_whatever_it_is_told(tmp_path: Path):
    mine = tmp_path / "mine.safetensors"
    mine.write_text("mine")
    store = SnapshotStore(tmp_path / "snapshots")
    (tmp_path / "snapshots").mkdir()
    for weights in (mine, Path("/") / mine, tmp_path / "snapshots" / ".." / mine.name):
        store.remove(Snapshot(namespace=1, seq=1, known=0, policy="p", encoder="e", state={}, weights=weights))
    assert mine.read_text() == "mine"


HOSTILE_STATE: dict[str, tuple[str, Any]] = {
    "weights that are nan": ("head.mode", np.full(8, np.nan)),
    "weights that are huge": ("head.mode", np.full(8, 1e300)),
    "a precision that is none": ("head.precision", -np.eye(7)),
    "a precision that is not symmetric": ("head.precision", np.triu(np.full((7, 7), 2.0)) + np.eye(7)),
    "weights of another length": ("head.mode", np.zeros(3)),
    "a rate that is negative": ("value.rates", np.full((3, 2), -1.0)),
    "a covariance of nothing": ("value.covariance", -1e6 * np.eye(3)),
    "rewards that are none": ("head.bandit", np.full((4, 9), 7.0)),
    "counters of nan": ("counters", np.full(5, np.nan)),
    "sizes that do not add up": ("head.sizes", np.array([5.0, 1e9])),
}


@pytest.mark.parametrize("name", HOSTILE_STATE)
def test_learned_state_that_cannot_be_is_learned_again_from_the_ledger(folder: Path, on_disk: OnDisk, name: str):
    honest = on_disk()
    expected = state_of(honest).policy.state_dict()
    honest.close()
    (file,) = (folder / "snapshots").iterdir()
    key, array = HOSTILE_STATE[name]
    _rewritten(file, {}, **{key: array})
    memory = on_disk()
    policy = state_of(memory).policy
    assert policy.rewards == 12
    np.testing.assert_allclose(policy.state_dict()["head.mode"], expected["head.mode"], atol=0.5)
    assert memory.recall("task 3 of kind 3").error is None
    assert memory.health().ok


def test_a_snapshot_that_claims_to_know_every_outcome_does_not_stop_the_learning(folder: Path, on_disk: OnDisk):
    (file,) = (folder / "snapshots").iterdir()
    _rewritten(file, {"known": 2**60})
    memory = on_disk()
    _teach(memory, 3)
    assert state_of(memory).policy.rewards == 15


def test_any_flipped_bit_of_what_was_learned_is_noticed(folder: Path, on_disk: OnDisk):
    (file,) = (folder / "snapshots").iterdir()
    content = file.read_bytes()
    store, said = SnapshotStore(folder / "snapshots"), []
    for place in range(0, len(content), 41):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        found = store.read(file)
        if found is not None:
            said.append(digest(found.state))
    file.write_bytes(content)
    assert set(said) <= {digest(store.read(file).state)}  # a bit that nobody reads may be any
    on_disk().close()


def test_a_small_file_that_unpacks_to_much_is_not_unpacked(tmp_path: Path):
    import zipfile

    file = tmp_path / "policy-1-0000000000000001.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.npy", b"\x93NUMPY" + bytes(50_000_000))
    began = time.monotonic()
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(file)
    assert time.monotonic() - began < 1.0
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match="does not have"):
        read_arrays(file)


# -- backups and ledgers -------------------------------------------------------------------------------------------------

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
        _sql(backup, SCHEMA[named])
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no fts5")
    with pytest.raises(StoreCorrupt, match=rf"{named}|'evil'"):
        restore(backup, folder, replace=True)
    with pytest.raises(StoreCorrupt, match=rf"{named}|'evil'"):
        CascadeMemory(backup, embedder="hashing")
    assert on_disk().stats().rewards == 12  # what was there is untouched


def test_advice_that_sqlite_left_on_how_to_search_is_no_reason_to_refuse(folder: Path, on_disk: OnDisk):
    _sql(folder, "ANALYZE")
    assert on_disk().recall("task 3 of kind 3").error is None


def test_an_old_ledger_with_a_trigger_is_refused_before_it_is_upgraded(tmp_path: Path):
    import gzip

    old = tmp_path / "old"
    old.mkdir()
    fixture = Path(__file__).parent.parent / "fixtures" / "ledger-v1.sqlite3.gz"
    (old / "ledger.sqlite3").write_bytes(gzip.decompress(fixture.read_bytes()))
    assert restore(old, tmp_path / "fine")["cases"] == 38
    _sql(old, "CREATE TRIGGER evil AFTER UPDATE ON cases BEGIN DELETE FROM outcome; END")
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
    memory.backup(tmp_path / "backup")
    (copied,) = (tmp_path / "backup" / "snapshots").iterdir()
    assert copied.read_bytes() == (folder / "snapshots" / copied.name).read_bytes()
    (tmp_path / "backup" / "snapshots" / "policy-1-0000000000000097.npz").symlink_to(secret)
    restore(tmp_path / "backup", tmp_path / "restored")
    assert all(file.is_file() and not file.is_symlink() for file in (tmp_path / "restored" / "snapshots").iterdir())
    assert secret.read_text() == "secret"


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
    _sql(backup, ROWS[row])
    with pytest.raises(StoreCorrupt, match="cannot be used"):
        restore(backup, tmp_path / "restored")
    _sql(folder, ROWS[row])
    memory = on_disk()
    assert memory.recall("task 2 of kind 2").error is None
    assert [check.name for check in memory.examine() if not check.ok][:1] == ["rows that cannot be used"]
    mended = {check.name: check for check in memory.examine(fix=True)}
    assert mended["rows that cannot be used"].detail.startswith("mended: ")
    assert all(check.ok for check in mended.values())
    assert memory.stats().cases >= 8  # nothing but the row that was hit
    recall = memory.recall("task 3 of kind 3")
    assert recall.error is None
    assert memory.reward(recall.episode_id, 1.0, solution="solution 3")
    memory.forget(memory.add("new", "case"))
    memory.backup(tmp_path / "again")


def test_a_case_keeps_what_it_says_where_only_numbers_were_lost(folder: Path, on_disk: OnDisk):
    _sql(
        folder,
        "UPDATE case_vector SET vector = zeroblob(8) WHERE key = 1",
        "UPDATE cases SET shown = 'x', pair = 'forged', verified_at = -1 WHERE key = 2",
    )
    memory = on_disk()
    assert memory.recall("task 1 of kind 1").error is None
    assert memory.health().failures["rows"] == 1
    cases = memory.stats().cases
    memory.examine(fix=True)
    assert memory.stats().cases == cases
    assert memory.search("task 1 of kind 1").cases[0].similarity == pytest.approx(1.0, abs=1e-5)


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
    memory.backup(tmp_path / "nightly")
    assert (tmp_path / "nightly.unfinished" / "mine").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memory", "nightly", "nightly.unfinished"]


def test_of_two_backups_at_once_to_one_place_exactly_one_succeeds(on_disk: OnDisk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 3)
    for turn in range(8):
        target, results = tmp_path / f"backup {turn}", []
        start = threading.Barrier(3)

        def take(target: Path = target, results: list[object] = results, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                results.append(memory.backup(target))
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

    monkeypatch.setattr(engine_of(memory).parts.ledger, "dump", broken)
    with pytest.raises(StoreUnwritable):
        memory.export(target)
    assert target.read_text() == "the one of yesterday"
    monkeypatch.undo()
    memory.export(target)
    assert target.read_text().count("\n") == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["export.jsonl", "memory"]


# -- imports -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lines(ram: CascadeMemory, tmp_path: Path) -> list[dict[str, Any]]:
    _teach(ram)
    ram.add("reset a password", "press reset")
    ram.export(tmp_path / "export.jsonl")
    return [json.loads(line) for line in (tmp_path / "export.jsonl").read_text().splitlines()]


def _blob(record: dict[str, Any], name: str, change: Callable[[np.ndarray], np.ndarray]) -> str:
    array = np.frombuffer(base64.b64decode(record[name]), "<f4")
    with np.errstate(all="ignore"):
        return base64.b64encode(change(array).astype("<f4").tobytes()).decode()


FORGED: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "features of 3e38": ("recall", lambda r: {"features": _blob(r, "features", lambda a: np.full_like(a, 3e38))}),
    "a vector times 1e30": ("case", lambda r: {"vector": _blob(r, "vector", lambda a: a * np.float32(1e30))}),
    "a vector of zeros": ("case", lambda r: {"vector": _blob(r, "vector", lambda a: a * 0)}),
    "shown that is a text": ("case", lambda r: {"shown": "x"}),
    "shown that is true": ("case", lambda r: {"shown": True}),
    "more successes than showings": ("case", lambda r: {"succeeded": r["shown"] + 5.0}),
    "copies of none": ("case", lambda r: {"copies": 0}),
    "a novelty of 7": ("case", lambda r: {"novelty": 7}),
    "a time before 1970": ("case", lambda r: {"created_at": -1.0}),
    "a time without end": ("episode", lambda r: {"opened_at": float("inf")}),
    "a number beyond 64 bits": ("recall", lambda r: {"k": 2**70}),
    "a text with an escape": ("case", lambda r: {"query": "a\x1b[2Jb"}),
    "a lone surrogate": ("recall", lambda r: {"policy": "\ud800"}),
    "a similarity of 7": ("recall", lambda r: {"numbers": _blob(r, "numbers", lambda a: a * 0 + 7)}),
    "an outcome of nan": ("outcome", lambda r: {"value": float("nan")}),
    "an outcome that learns twice": ("outcome", lambda r: {"learns": 2}),
    "an outcome of an open episode": ("episode", lambda r: {"status": "open"}),
    "an id that is a number": ("recall", lambda r: {"id": 5}),
    "candidates that are no list": ("recall", lambda r: {"candidates": {"a": 1}}),
    "an unknown kind": ("case", lambda r: {"kind": ["case"]}),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_record_is_refused_with_its_line(lines: list[dict[str, Any]], what: str):
    kind, forge = FORGED[what]
    places = [i for i, record in enumerate(lines) if record.get("kind") == kind and record.get("candidates") != []]
    place = places[-1]
    if what == "an outcome of an open episode":
        place = places[0]
    lines[place].update(forge(lines[place]))
    with CascadeMemory(embedder="hashing", learn="inline", max_cases=100) as memory:
        memory.add("mine", "my solution")
        with pytest.raises(InvalidInput, match="nothing was imported") as caught:
            memory.import_([json.dumps(line) for line in lines])
        assert f"line {place + 1} " in str(caught.value) or "settled" in str(caught.value)
        assert memory.stats().cases == 1
        assert memory.recall("mine").error is None


def test_a_forged_pair_does_not_take_the_place_of_an_honest_case(lines: list[dict[str, Any]]):
    from cascade_memory.domain.digests import pair_key

    attack = next(record for record in lines if record.get("kind") == "case" and record["query"] == "reset a password")
    attack.update(text="send it to eve", head="harmless", pair=pair_key("pay a bill", "use the app"), solution="0" * 32)
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.import_([json.dumps(line) for line in lines])
        mine = memory.add("pay a bill", "use the app")
        assert memory.get(mine).solution == "use the app"
        assert memory.get(attack["id"]).solution == "send it to eve"
        with engine_of(memory).parts.ledger.connections.read() as connection:
            heads = dict(connection.execute("SELECT id, head FROM cases").fetchall())
            digests = dict(connection.execute("SELECT cases.id, digest FROM cases JOIN solution ON solution.id = solution"))
            assert not faults(connection, 5)
        assert heads[attack["id"]] == "send it to eve"
        assert digests[attack["id"]] == text_digest("send it to eve")


def test_a_solution_keeps_its_relations_whatever_the_file_calls_it(lines: list[dict[str, Any]], ram: CascadeMemory):
    """The digests of another matcher name the same solutions here."""
    text = json.dumps(lines)
    for record in lines:
        if record.get("kind") == "case":
            text = text.replace(record["solution"], f"theirs {record['solution']}")
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        assert memory.import_([json.dumps(line) for line in json.loads(text)]) == len(lines) - 1
        query = """SELECT groups FROM recall ORDER BY key"""
        mine, theirs = (engine_of(one).parts.ledger.connections for one in (ram, memory))
        with mine.read() as first, theirs.read() as second:
            shapes = [
                [np.unique(np.frombuffer(groups, "<i8"), return_inverse=True)[1].tolist() for (groups,) in one.execute(query)]
                for one in (first, second)
            ]
            known = second.execute("SELECT count(*) FROM solution WHERE id NOT IN (SELECT solution FROM cases)").fetchone()[0]
        assert shapes[0] == shapes[1]
        assert known == 0


def test_records_name_nothing_in_other_namespaces(lines: list[dict[str, Any]]):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        theirs = memory.add("secret task", "secret solution", namespace="other")
        shown = [record for record in lines if record.get("kind") == "recall" and record["candidates"]][-1]
        shown["candidates"][0] = theirs
        memory.import_([json.dumps(line) for line in lines])
        assert theirs not in {case for episode in engine_of(memory).parts.ledger.episodes(None) for case in episode.cases}
