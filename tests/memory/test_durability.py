"""What was acknowledged is there: after a restart, after a kill, beside another process, with a broken Chroma."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import MemoryForked, StoreError, StoreUnwritable


def _teach(memory: CascadeMemory, n: int, start: int = 0) -> None:
    for i in range(start, start + n):
        recall = memory.recall(f"task {i} of kind {i % 7}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")


def test_everything_is_there_after_a_restart(on_disk):
    memory = on_disk()
    _teach(memory, 40)
    open_one = memory.recall("still open").episode_id
    before, state = memory.stats(), state_of(memory).policy.state_dict()
    memory.close()
    memory = on_disk()
    assert memory.stats() == before
    for name, array in state_of(memory).policy.state_dict().items():
        np.testing.assert_allclose(array, state[name], err_msg=name)
    assert memory.reward(open_one, 1.0, solution="late")  # from another process, as it were


@pytest.mark.parametrize("damage", ["remove", "truncate", "garbage"])
def test_without_its_snapshots_the_ranker_is_learned_again_from_the_ledger(on_disk, tmp_path: Path, damage: str):
    memory = on_disk()
    _teach(memory, 40)
    rewards = state_of(memory).policy.rewards
    memory.close()
    for file in (tmp_path / "memory" / "snapshots").iterdir():
        if damage == "remove":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:100] if damage == "truncate" else b"PK\x03\x04 garbage")
    assert state_of(on_disk()).policy.rewards == rewards


def test_a_snapshot_that_is_behind_is_caught_up_from_the_ledger(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 40)
    memory.close()
    old = {file.name: file.read_bytes() for file in (tmp_path / "memory" / "snapshots").iterdir()}
    memory = on_disk()
    _teach(memory, 25, start=40)
    state = state_of(memory).policy.state_dict()
    memory.close()
    shutil.rmtree(tmp_path / "memory" / "snapshots")
    (tmp_path / "memory" / "snapshots").mkdir()
    for name, content in old.items():
        (tmp_path / "memory" / "snapshots" / name).write_bytes(content)
    for name, array in state_of(on_disk()).policy.state_dict().items():
        np.testing.assert_allclose(array, state[name], err_msg=name)


def test_a_killed_process_leaves_a_chroma_that_is_thrown_away_unread(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 40)
    memory.sync()  # Chroma is open now, and noted as such in the ledger
    copy = tmp_path / "killed"
    shutil.copytree(tmp_path / "memory", copy)
    chroma = copy / "chroma"
    for file in chroma.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff" * 5000)
    began = time.perf_counter()
    with CascadeMemory(copy, embedder="hashing") as reopened:
        assert len(reopened.cases.search("task 3 of kind 3", k=5).cases) == 5
        assert time.perf_counter() - began < 2
        reopened.sync()
        assert all(check.ok for check in reopened.data.examine())


def test_a_deleted_chroma_is_made_again(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 40)
    memory.close()
    shutil.rmtree(tmp_path / "memory" / "chroma")
    memory = on_disk()
    assert len(memory.cases.search("task 3 of kind 3", k=5).cases) == 5
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    assert memory.health().ok


@pytest.mark.long
def test_many_cases_are_rebuilt_by_a_child_that_dies_with_its_parent(on_disk, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cascade_memory.engine.mirror_projection.BUILD_ELSEWHERE", 10)
    memory = on_disk()
    _teach(memory, 40)
    memory.close()
    shutil.rmtree(tmp_path / "memory" / "chroma")
    memory = on_disk()
    assert memory.health().chroma == "rebuilding"
    assert memory.cases.search("task 3 of kind 3").cases  # answered meanwhile
    deadline = time.monotonic() + 60
    while memory.health().chroma == "rebuilding" and time.monotonic() < deadline:
        time.sleep(0.1)
    _teach(memory, 20, start=40)
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    memory.close()
    shutil.rmtree(tmp_path / "memory" / "chroma")
    memory = on_disk()
    memory.close()  # while the child is at work
    assert not list((tmp_path / "memory").glob("*.building"))
    assert not _children()


def _children() -> list[str]:
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(os.getpid()) and "build_mirror" in line]


def test_a_second_process_follows_and_takes_over_when_the_owner_is_gone(on_disk, tmp_path: Path):
    script = textwrap.dedent(
        """
        import sys
        from cascade_memory import CascadeMemory
        memory = CascadeMemory(sys.argv[1], embedder="hashing", learn="inline")
        print(memory.health().chroma, flush=True)
        for line in sys.stdin:
            word = line.strip()
            if word == "write":
                recall = memory.recall("from the follower")
                print(memory.reward(recall.episode_id, 1.0, solution="follower's"), flush=True)
            elif word == "read":
                print(",".join(str(case.solution) for case in memory.cases.search("from the owner").cases), flush=True)
            elif word == "wait":
                import time
                while memory.health().chroma == "follower":
                    time.sleep(0.05)
                memory.sync()
                print(memory.health().chroma, memory.stats().cases, flush=True)
        """
    )
    owner = on_disk()
    owner.add("from the owner", "owner's")
    follower = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "memory")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert follower.stdin is not None
    assert follower.stdout is not None

    def ask(word: str) -> str:
        assert follower.stdin is not None
        assert follower.stdout is not None
        follower.stdin.write(word + "\n")
        follower.stdin.flush()
        return follower.stdout.readline().strip()

    try:
        assert follower.stdout.readline().strip() == "follower"
        assert ask("read") == "owner's"
        case_id = ask("write")
        assert owner.cases.search("from the follower").cases[0].id == case_id
        assert state_of(owner).policy.rewards == 1  # learned from the other process's outcome
        owner.close()
        assert ask("wait") == "clean 2"  # it owns the folder now, and Chroma had everything already
    finally:
        follower.stdin.close()
        follower.wait(timeout=30)
        follower.stdout.close()


def test_opening_the_same_folder_twice_gives_the_same_engine(on_disk, tmp_path: Path):
    first, second = on_disk(), on_disk(namespace="other")
    assert engine_of(first) is engine_of(second)
    (tmp_path / "link").symlink_to(tmp_path / "memory")
    third = CascadeMemory(tmp_path / "link", embedder="hashing", learn="inline")
    assert engine_of(third) is engine_of(first)
    first.close()
    second.add("still", "open")
    with pytest.raises(ValueError, match="open in this process with ranker"):
        on_disk(ranker="similarity")
    second.close()
    third.close()
    assert on_disk(ranker="similarity").acting(namespace="other").stats().cases == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_a_clear_error_and_may_open_its_own(on_disk, tmp_path: Path):
    memory = on_disk()
    memory.add("q", "s")
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about forking a process with threads: that is the point
        child = os.fork()
    if child == 0:
        try:
            try:
                memory.recall("q")
                verdict = "no error"
            except MemoryForked as error:
                verdict = f"forked: {error}"
            other = CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline")
            verdict += f" | {other.cases.search('q').cases[0].solution} | {other.health().chroma}"
        except BaseException as error:
            verdict = repr(error)
        os.write(write, verdict.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    answer = os.read(read, 10_000).decode()
    os.close(read)
    assert "open it again there" in answer
    assert answer.endswith("| s | follower")
    assert memory.cases.search("q").cases[0].solution == "s"


def test_a_full_disk_is_an_error_loses_nothing_and_passes(on_disk):
    memory = on_disk()
    _teach(memory, 20)
    episode = memory.recall("the last one").episode_id
    before = memory.stats()
    connections = engine_of(memory).parts.ledger.connections
    for durable in (False, True):
        with connections.write(durable=durable) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to say: no room
    big = "x" * 100_000
    with pytest.raises(StoreUnwritable, match="no room left"):
        memory.reward(episode, 1.0, solution=big)
    with pytest.raises(StoreUnwritable, match="nothing stored so far was lost"):
        memory.add("q", big)
    with pytest.warns(RuntimeWarning, match="could not store a recall"):  # recall keeps the agent going
        recall = memory.recall("y" * 50_000)
    assert len(recall.cases) == 1
    assert "no room left" in str(recall.error)
    assert memory.stats() == before
    assert memory.health().failures == {"record": 1}
    for durable in (False, True):
        with connections.write(durable=durable) as connection:
            connection.execute("PRAGMA max_page_count = 1000000")
    assert memory.reward(episode, 1.0, solution=big)


def test_a_ranker_that_fails_is_replaced_by_similarity_and_counted(ram: CascadeMemory, monkeypatch):
    ram.add([("heat the cup", "a"), ("cool the plate", "b")])

    def broken(*_: object, **__: object) -> object:
        raise ArithmeticError("no numbers today")

    monkeypatch.setattr(state_of(ram).encoder, "encode", broken)
    recall = ram.recall("heat the cup")
    assert recall.cases[0].solution == "a"
    assert ram.health().failures == {"rank": 1}
    assert "no numbers today" in str(ram.health().last_error)
    ram.reward(recall.episode_id, 1.0, solution="a")


def test_an_embedder_that_fails_does_not_stop_the_agent(ram: CascadeMemory, monkeypatch):
    def broken(texts: object) -> object:
        raise ConnectionError("embedding server is down")

    monkeypatch.setattr(engine_of(ram).parts.embedder, "embed", broken)
    with pytest.warns(RuntimeWarning, match="embedding server is down"):
        assert ram.recall("q").cases == ()
    with pytest.warns(RuntimeWarning), ram.episode("q") as episode:
        assert episode.cases == ()
    assert not ram.health().ok


def test_learning_that_fails_is_counted_and_the_reward_stands(ram: CascadeMemory, monkeypatch):
    def broken(feedback: object) -> None:
        raise ArithmeticError("singular")

    monkeypatch.setattr(state_of(ram).policy, "update", broken)
    assert ram.reward(ram.recall("q").episode_id, 1.0, solution="s")
    assert ram.health().failures == {"learn": 1}
    assert ram.stats().rewards == 1


def test_chroma_that_fails_is_counted_and_recall_goes_on(on_disk, monkeypatch):
    memory = on_disk()

    def broken(*_: object) -> None:
        raise RuntimeError("Error loading hnsw index")

    monkeypatch.setattr(engine_of(memory).parts.mirror, "upsert", broken)
    _teach(memory, 5)
    with pytest.raises(StoreError, match="Nothing is lost"):
        memory.sync()
    assert memory.cases.search("task 1 of kind 1").cases
    assert memory.health().failures["chroma"] >= 1
    monkeypatch.undo()
    memory.sync()
    assert all(check.ok for check in memory.data.examine())


@pytest.mark.slow
def test_every_case_is_exported_and_imported_with_what_was_learned(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 60)
    lines = memory.data.export(tmp_path / "all.jsonl")
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert len(records) == lines
    assert records[0]["version"] == 1
    with CascadeMemory(embedder="hashing", learn="inline") as other:
        assert other.data.import_(tmp_path / "all.jsonl") == lines - 1
        assert other.data.import_(tmp_path / "all.jsonl") == 0
        assert other.stats() == memory.stats() or other.stats().cases == memory.stats().cases
        mine = memory.recall("task 9 of kind 2", k=3).explain()
        theirs = other.recall("task 9 of kind 2", k=3).explain()
        assert [one.query for one in mine.candidates] == [one.query for one in theirs.candidates]
        assert theirs.rewards == 60


@pytest.mark.parametrize("content", ["", "{}\n", "not json\n", '{"format": "cascade-memory export", "version": 99}\n', "[1]\n"])
def test_a_file_that_is_no_export_is_refused(ram: CascadeMemory, tmp_path: Path, content: str):
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises((ValueError, OSError)):
        ram.data.import_(tmp_path / "x.jsonl")
    with pytest.raises(StoreUnwritable):
        ram.data.import_(tmp_path / "nobody.jsonl")
    assert ram.stats().cases == 0


@pytest.mark.parametrize("damage", ["cut", "kind", "field"])
def test_an_export_with_one_bad_line_imports_nothing(ram: CascadeMemory, tmp_path: Path, damage: str):
    with CascadeMemory(embedder="hashing", learn="inline") as source:
        _teach(source, 10)
        source.data.export(tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    record = json.loads(lines[-1])
    if damage == "kind":
        record["kind"] = "spell"
    elif damage == "field":
        del record["value"]
    lines[-1] = lines[-1][:-20] if damage == "cut" else json.dumps(record)
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="nothing was imported"):
        ram.data.import_(tmp_path / "x.jsonl")
    assert ram.stats().cases == 0


def test_the_ledger_is_a_plain_sqlite_file_in_wal_mode(on_disk, tmp_path: Path):
    on_disk().add("q", "s")
    reader = sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")
    assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert reader.execute("SELECT query FROM cases").fetchone() == ("q",)
    reader.close()
