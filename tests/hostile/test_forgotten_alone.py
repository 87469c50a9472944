"""Who is forgotten is forgotten wholly, and takes nobody else along."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Retention, Step, Trajectory

TASK, SOLVED = "unlock the door of the shed", "turn the key twice"
_PEOPLE = ["ann", "bob", "carl", "dora", "emil"]


def _verify(memory: CascadeMemory, person: str, way: str) -> str:
    if way == "added":
        return memory.add(TASK, SOLVED, metadata={"user": person, "tags": [f"{person}-2", f"{person}-1"]})
    metadata = {"user": person, "tags": [f"{person}-2", f"{person}-1"]}
    if way == "recalled":
        case_id = memory.reward(memory.recall(TASK, metadata=metadata).episode_id, 1.0, solution=SOLVED)
    else:
        case_id = memory.reward(memory.recall(TASK).episode_id, 1.0, solution=SOLVED, metadata=metadata)
    assert case_id is not None
    return case_id


def _rows(memory: CascadeMemory, text: str) -> list[str]:
    """Every table of the ledger that holds a text."""
    found = []
    with engine_of(memory).parts.ledger.connections.read() as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            found += [table for row in rows if any(text in str(value) for value in row)]
    return found


@pytest.mark.parametrize("ways", itertools.product(["added", "rewarded", "recalled"], repeat=2))
def test_five_people_verified_one_pair_and_each_goes_alone(ram: CascadeMemory, ways: tuple[str, str]):
    ids = {_verify(ram, person, ways[i % 2]) for i, person in enumerate(_PEOPLE)}
    (case_id,) = ids
    for left, person in zip(range(4, 0, -1), _PEOPLE, strict=False):
        assert ram.forget(where={"user": person}).cases == 0
        case = ram.cases.get(case_id)
        first = _PEOPLE[len(_PEOPLE) - left]
        assert (case.copies, case.metadata) == (left, {"user": first, "tags": [f"{first}-2", f"{first}-1"]})
        assert _rows(ram, person) == []
        assert ram.cases.search(TASK, where={"user": first}).cases[0].id == case_id
        assert not ram.cases.search(TASK, where={"user": person}).cases
    assert ram.forget(where={"user": "emil"}).cases == 1
    assert ram.stats().cases == 0


def test_the_last_to_come_goes_first(ram: CascadeMemory):
    for person, way in zip(_PEOPLE, itertools.cycle(["rewarded", "added", "recalled"]), strict=False):
        case_id = _verify(ram, person, way)
    for person in reversed(_PEOPLE[1:]):
        ram.forget(where={"user": person})
        assert ram.cases.get(case_id).metadata["user"] == "ann"
        assert _rows(ram, person) == []
    assert ram.cases.get(case_id).copies == 1


def test_the_case_says_from_whom_it_is_now(ram: CascadeMemory):
    ram.add(TASK, SOLVED, metadata={"user": "ann"}, source="host")
    episode = ram.recall(TASK).episode_id
    case_id = ram.reward(episode, 1.0, solution=SOLVED, source="human")
    before = ram.cases.get(case_id)
    ram.forget(where={"user": "ann"})
    after = ram.cases.get(case_id)
    assert (before.episode_id, before.source) == (None, "host")
    assert (after.episode_id, after.source, after.metadata) == (episode, "human", {})
    assert after.created_at > before.created_at
    ram.forget(episode_id=episode)
    assert ram.stats().cases == 0


def test_what_only_the_forgotten_wrote_into_a_trajectory_goes_as_well(ram: CascadeMemory):
    def walk(secret: str) -> Trajectory:
        return Trajectory([Step(action="look", tool="map", arguments={"note": secret}, observation="a door")])

    assert walk("ann's").as_text() == walk("bob's").as_text()
    case_id = ram.add(TASK, walk("ann's"), metadata={"user": "ann"})
    assert ram.add(TASK, walk("bob's"), metadata={"user": "bob"}) == case_id
    assert ram.add(TASK, walk("ann's"), metadata={"user": "carl"}) == case_id  # carl's own words, like hers
    ram.forget(where={"user": "ann"})
    assert ram.cases.get(case_id).solution == walk("bob's")
    ram.forget(where={"user": "bob"})
    assert ram.cases.get(case_id).solution == walk("ann's")
    assert _rows(ram, "bob") == []


def test_a_case_forgotten_by_its_id_takes_everybody_along(ram: CascadeMemory):
    for person, way in zip(_PEOPLE, itertools.cycle(["rewarded", "added"]), strict=False):
        case_id = _verify(ram, person, way)
    receipt = ram.forget(case_id)
    assert (receipt.cases, receipt.episodes) == (1, 3)
    assert ram.stats().episodes == 0
    assert [table for person in _PEOPLE for table in _rows(ram, person)] == []


def test_a_withdrawn_verification_vouches_for_nothing(ram: CascadeMemory):
    first = ram.recall(TASK, metadata={"user": "ann"}).episode_id
    case_id = ram.reward(first, 1.0, solution=SOLVED)
    second = ram.recall(TASK, metadata={"user": "bob"}).episode_id
    ram.reward(second, 1.0, solution=SOLVED)
    ram.reward(first, 0.0, overwrite=True)  # she was wrong: the case is bob's now
    assert (ram.cases.get(case_id).metadata, ram.cases.get(case_id).copies) == ({"user": "bob"}, 1)
    ram.forget(where={"user": "ann"})
    assert ram.cases.get(case_id).copies == 1
    assert _rows(ram, "ann") == []
    ram.forget(where={"user": "bob"})
    assert ram.stats().cases == 0


def test_metadata_that_was_replaced_leaves_no_trace(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.reward(episode, 0.0, metadata={"user": "ann"})
    ram.reward(episode, 1.0, solution=SOLVED, metadata={"user": "bob"}, overwrite=True)
    assert _rows(ram, "ann") == []


@pytest.mark.parametrize("ending", ["open", "noted", "discarded", "expired", "failed", "reported", "reported and expired"])
def test_an_episode_is_found_by_what_its_recall_was_told_however_it_ended(ram: CascadeMemory, ending: str):
    mine = ram.recall("ann's secret", metadata={"user": "ann", "tags": ["x", "y"]}).episode_id
    other = ram.recall("bob's secret", metadata={"user": "bob"}).episode_id
    if ending == "noted":
        ram.episodes.finish(mine, solution="ann's answer")
    elif ending == "discarded":
        ram.episodes.discard(mine)
    elif ending == "expired":
        time.sleep(0.001)
        assert ram.episodes.expire(0.0) == 2
    elif ending == "failed":
        ram.reward(mine, 0.0, solution="ann's answer")
    elif ending.startswith("reported"):
        ram.reward(mine, 1.0, solution="ann's answer", source="agent")
        if ending.endswith("expired"):
            time.sleep(0.001)
            ram.episodes.expire(0.0, reported=True)
    assert ram.forget(where={"tags": "y"}).episodes == 1
    assert ram.episodes.get(mine) is None
    assert ram.episodes.get(other) is not None
    assert _rows(ram, "ann") == []


def test_what_a_recall_was_told_goes_on_to_the_outcome_and_its_case(ram: CascadeMemory):
    episode = ram.recall(TASK, metadata={"user": "ann", "shop": "north"}).episode_id
    ram.recall("a further look", episode_id=episode, metadata={"shop": "south"})
    case_id = ram.reward(episode, 1.0, solution=SOLVED, metadata={"tool": "key"})
    assert ram.cases.get(case_id).metadata == {"user": "ann", "shop": "south", "tool": "key"}
    assert ram.episodes.get(episode).metadata == ram.cases.get(case_id).metadata
    for where in ({"shop": "north"}, {"user": "ann"}):
        assert ram.cases.search(TASK, where=where).cases == () or where == {"user": "ann"}
    assert ram.forget(where={"shop": "north"}).episodes == 1  # said once: the episode has to do with it


def test_a_session_and_a_proposal_can_be_somebodys_too(ram: CascadeMemory):
    with ram.episode(TASK, metadata={"user": "ann"}) as episode:
        episode.solution = SOLVED
    ram.review.propose("another task", "done", metadata={"user": "ann"})
    assert ram.forget(where={"user": "ann"}).episodes == 2
    assert ram.stats().episodes == 0


def test_it_travels_with_an_export(ram: CascadeMemory, tmp_path: Path):
    case_id = _verify(ram, "ann", "added")
    _verify(ram, "bob", "added")
    _verify(ram, "carl", "recalled")
    open_one = ram.recall("dora's secret", metadata={"user": "dora"}).episode_id
    ram.data.export(tmp_path / "all.jsonl", progress=False)
    with CascadeMemory(embedder="hashing") as other:
        other.data.import_(tmp_path / "all.jsonl", progress=False)
        for person, first in (("ann", "bob"), ("bob", "carl")):
            other.forget(where={"user": person})
            assert other.cases.get(case_id).metadata == {"user": first, "tags": [f"{first}-2", f"{first}-1"]}
        assert other.forget(where={"user": "dora"}).episodes == 1
        assert other.episodes.get(open_one) is None
        assert _rows(other, "dora") + _rows(other, "ann") + _rows(other, "bob") == []


def test_after_a_purge_no_file_knows_her_while_the_case_stays(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk(learn="background")
    secret = "quetzalcoatlus"
    case_id = memory.add(TASK, SOLVED, metadata={"user": secret})
    memory.reward(memory.recall(TASK, metadata={"user": "bob"}).episode_id, 1.0, solution=SOLVED)
    memory.recall("never rewarded", metadata={"user": secret})
    memory.sync()
    assert _files_with(tmp_path, secret)
    receipt = memory.forget(where={"user": secret}, purge=True)
    assert (receipt.purged, receipt.stale) == (True, ())
    assert _files_with(tmp_path, secret) == []
    assert memory.cases.get(case_id).metadata == {"user": "bob"}
    memory.close()
    assert _files_with(tmp_path, secret) == []


def test_chroma_says_whose_word_it_is_now_without_a_purge(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk()
    case_id = memory.add(TASK, SOLVED, metadata={"user": "ann", "only": "hers"})
    memory.add(TASK, SOLVED, metadata={"user": "bob"})
    memory.add("another task", "another solution", metadata={"user": "carl"})
    memory.sync()
    memory.forget(where={"user": "ann"})
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    memory.close()
    found = chromadb.PersistentClient(str(tmp_path / "memory" / "chroma")).get_collection("default").get()
    told = dict(zip(found["ids"], found["metadatas"] or [], strict=True))
    assert len(told) == 2
    assert told[case_id]["user"] == "bob"
    assert "only" not in told[case_id]


def _files_with(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_an_old_ledger_does_not_know_who_else_added_a_case(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk()
    case_id = memory.add(TASK, SOLVED, metadata={"user": "ann"})
    memory.add(TASK, SOLVED, metadata={"user": "bob"})
    kept = memory.add("another task", SOLVED, metadata={"user": "ann"})
    bobs = memory.recall("another task").episode_id
    memory.reward(bobs, 1.0, solution=SOLVED, metadata={"user": "bob"})
    memory.close()
    _set_back(tmp_path / "memory" / "ledger.sqlite3")
    memory = on_disk()
    assert memory.cases.get(case_id).copies == 2
    assert memory.forget(where={"user": "ann"}).cases == 1
    assert memory.cases.get(kept).metadata == {"user": "bob"}  # his episode was written down even then
    assert _rows(memory, "ann") == []


def _set_back(path: Path) -> None:
    """Make of a ledger what version 3 wrote."""
    with contextlib.closing(sqlite3.connect(path)) as ledger, ledger:
        for table in (
            *("addition", "addition_field", "episode_field", "expired_field", "expired_vector", "expired"),
            *("action", "judged_attempt", "failure", "checked", "warning_decision"),
        ):
            ledger.execute(f"DROP TABLE IF EXISTS {table}")
        for index in ("episode_reported", "episode_actor", "outcome_actor", "outcome_counted", "cases_actor"):
            ledger.execute(f"DROP INDEX {index}")
        ledger.execute("DROP INDEX cases_verified")
        ledger.execute("CREATE INDEX cases_verified ON cases(namespace, verified_at)")
        for table, column in (
            *(("cases", "probation"), ("cases", "trust")),  # the last columns first
            *((table, name) for table in ("episode", "outcome", "cases") for name in ("channel", "actor")),
            ("episode", "metadata"),
            ("episode", "reported"),
            ("outcome", "metadata"),
            ("outcome", "agents_words"),
            ("outcome", "unkept"),
            ("cases", "verified_run"),
            ("cases", "pinned"),
            ("cases", "hidden"),
            ("recall", "forgot"),
        ):
            ledger.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        ledger.execute("PRAGMA user_version = 3")


def test_what_the_forgotten_counted_is_taken_back(ram: CascadeMemory):
    ids = [ram.add(f"task {i} of some kind", f"solution {i}") for i in range(5)]
    honest = ram.recall("task 0 of some kind").episode_id
    ram.reward(honest, 1.0)
    before = {case_id: (ram.cases.get(case_id).shown, ram.cases.get(case_id).succeeded) for case_id in ids}
    for i in range(30):
        episode = ram.recall(f"task {i % 5} of some kind", metadata={"user": "mallory"}).episode_id
        ram.reward(episode, 0.3)
        if i % 3 == 0:
            ram.reward(episode, 0.9, overwrite=True)  # withdrawn outcomes were taken back then: not twice
    assert {case_id: (ram.cases.get(case_id).shown, ram.cases.get(case_id).succeeded) for case_id in ids} != before
    ram.forget(where={"user": "mallory"})
    for case_id in ids:
        assert ram.cases.get(case_id).shown == before[case_id][0]
        assert ram.cases.get(case_id).succeeded == pytest.approx(before[case_id][1])


def test_forgetting_everything_and_the_doctor_know_the_new_rows(ram: CascadeMemory):
    _verify(ram, "ann", "added")
    ram.recall("open", metadata={"user": "ann"})
    ram.forget(everything=True)
    assert _rows(ram, "ann") == []
    with engine_of(ram).parts.ledger.connections.write(durable=False) as connection:
        connection.execute("INSERT INTO addition VALUES (77, 1, 999, 'host', 0, '{}', NULL, NULL, NULL)")
        connection.execute("INSERT INTO addition_field VALUES (1, 'user', 'ann', 77)")
        connection.execute("INSERT INTO episode_field VALUES (1, 'user', 'ann', 999)")
    assert not all(check.ok for check in ram.data.examine())
    ram.data.examine(fix=True)
    assert all(check.ok for check in ram.data.examine())
    assert _rows(ram, "ann") == []


@pytest.mark.parametrize("metadata", [{"user": object()}, "ann", {"#id": "x"}, {"user": None}])
def test_metadata_that_cannot_be_kept_is_refused_before_anything_is_written(ram: CascadeMemory, metadata: Any):
    for call in (lambda: ram.recall(TASK, metadata=metadata), lambda: ram.review.propose(TASK, SOLVED, metadata=metadata)):
        with pytest.raises(ValueError, match="metadata"):
            call()
    assert ram.stats().episodes == 0


def test_an_evicted_case_is_forgotten_with_whoever_verified_it():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=5)) as memory:
        for i in range(20):
            memory.add(f"task {i}", f"solution {i}", metadata={"user": "ann"})
            episode = memory.recall(f"other task {i}", metadata={"user": "bob"}).episode_id
            memory.reward(episode, 1.0, solution=f"other solution {i}")
        memory.forget(where={"user": "ann"})
        assert memory.forget(where={"user": "bob"}).episodes == 20
        assert memory.stats().cases == 0
        assert _rows(memory, "ann") == []
