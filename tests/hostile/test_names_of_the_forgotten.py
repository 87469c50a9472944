"""Names after a purge: of a namespace that was emptied, of an actor that was undone, and of those who acted."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.errors import NamespaceForgotten, UnknownEpisode

ZOE, BOB, EVE = "zoe-quimby@example.org", "bob-ulrich@example.org", "eve-oakes@example.org"


def files_with(folder: Path, name: str) -> list[str]:
    return [
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file() and name.encode() in file.read_bytes()
    ]


def live(memory: CascadeMemory, name: str) -> None:
    """Let somebody use a namespace of their own in every way that leaves something behind."""
    mine = memory.acting(namespace=name)
    for number in range(6):
        recall = mine.recall(f"task {number}", metadata={"user": name}, thread_id=name)
        recall.reward(float(number % 2), solution=f"answer {number}")
    mine.cases.search("task 1")
    mine.review.correct(mine.recall("a hard one").episode_id, "so", note=f"{name} said so")
    mine.forget(mine.add("by hand", "s"))
    mine.warnings.all()


@pytest.mark.parametrize("through", ["python", "cli"])
def test_no_byte_of_its_name_is_left_of_a_namespace_that_was_purged(tmp_path: Path, through: str, capsys: Any):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.add("of others", "stays")
        live(memory, ZOE)
        if through == "python":
            receipt = memory.acting(namespace=ZOE).forget(everything=True, purge=True)
            assert (receipt.purged, receipt.stale, receipt.names) == (True, (), ())
            assert memory.data.namespaces() == ["default"]
            assert not files_with(folder, ZOE)  # also while it is open
    if through == "cli":
        main(["data", "forget", str(folder), "--everything", "--purge", "--yes", "--namespace", ZOE, "--by", "admin"])
        said = capsys.readouterr().out
        assert "purged: no file" in said
        assert "a name stays: 2 entries of the audit log name those who acted in it" in said
    assert not files_with(folder, ZOE)
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.data.namespaces() == ["default"]
        assert [case.solution for case in memory.cases.all()] == ["stays"]
        assert all(check.ok for check in memory.data.examine())


def test_a_name_that_comes_again_begins_anew(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        numbers = []
        for name in (ZOE, BOB, ZOE):
            live(memory, name)
            numbers.append(engine_of(memory).namespace_id(name))
            kept = memory.acting(namespace=name).stats()
            assert (kept.episodes, kept.recalls) == (7, 8)
            assert {entry.action for entry in memory.acting(namespace=name).review.audit()} == {"correct", "add", "forget"}
            memory.acting(actor="admin", namespace=name).forget(everything=True, purge=True)
            assert list(memory.acting(namespace=name).review.audit()) == []
        assert len(set(numbers)) == 3
        assert memory.data.namespaces() == []
        memory.data.export(tmp_path / "all.jsonl")
    assert ZOE not in (tmp_path / "all.jsonl").read_text()


_ELSEWHERE = """
import sys
from cascade_memory import CascadeMemory
with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline") as memory:
    mine = memory.acting(namespace=sys.argv[2])
    mine.recall("before")
    print("ready", flush=True)
    for line in sys.stdin:
        what = line.strip()
        if what == "add":
            mine.add("q", "s")
        elif what == "propose":
            mine.review.propose("p", "s")
        else:
            mine.recall("r").reward(1.0, solution="t")
        print(memory.health().last_error, flush=True)
"""


_LONG = pytest.mark.long


@pytest.mark.parametrize("first", ["add", pytest.param("propose", marks=_LONG), pytest.param("recall", marks=_LONG)])
def test_another_process_that_has_it_open_goes_on_under_the_same_name(tmp_path: Path, first: str):
    folder = tmp_path / "memory"
    command = [sys.executable, "-c", _ELSEWHERE, str(folder), ZOE]
    with (
        CascadeMemory(folder, embedder="hashing", learn="inline") as memory,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        receipt = memory.acting(namespace=ZOE).forget(everything=True, purge=True)
        assert receipt.names == ()
        assert memory.data.namespaces() == []
        for what in (first, "add", "propose", "recall"):
            other.stdin.write(f"{what}\n")
            other.stdin.flush()
            assert other.stdout.readline() == "None\n", what
        other.stdin.close()
        assert memory.data.namespaces() == [ZOE]
        found = memory.acting(namespace=ZOE).stats()
        assert (found.cases, found.episodes) == (2, {"add": 2, "propose": 3, "recall": 3}[first])
        assert all(check.ok for check in memory.data.examine())


def test_while_others_write_nothing_that_was_acknowledged_is_lost_and_nothing_is_nameless(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        done: list[str] = []
        purged, stop = threading.Event(), threading.Event()

        def write() -> None:
            while not stop.is_set():
                after = purged.is_set()
                try:
                    case = memory.acting(namespace=ZOE).add(f"q {len(done)} {threading.get_ident()}", "s")
                except (NamespaceForgotten, UnknownEpisode):
                    continue
                if after:
                    done.append(case)

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            memory.acting(namespace=ZOE).forget(everything=True, purge=True)
        purged.set()
        while len(done) < 10:
            stop.wait(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        there = {case.id for case in memory.acting(namespace=ZOE).cases.all()}
        assert set(done) <= there
        with engine_of(memory).parts.ledger.connections.read() as connection:
            names = {number for (number,) in connection.execute("SELECT id FROM namespace").fetchall()}
            held = {number for (number,) in connection.execute("SELECT DISTINCT namespace FROM cases").fetchall()}
        assert held <= names


def test_an_actor_who_was_undone_is_named_only_where_the_receipt_says(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for name in (BOB, EVE):
            recall = memory.acting(actor=name).recall(f"task of {name}")
            memory.acting(actor=name).reward(recall.episode_id, 1.0, solution=f"answer of {name}", metadata={"user": name})
            memory.acting(actor=name).add(f"by {name}", "s", source="user")
        memory.forget(by_actor=BOB)  # the note says whose it was, until a purge
        assert any(BOB in (entry.note or "") for entry in memory.review.audit())
        receipt = memory.acting(actor="admin").forget(by_actor=BOB, purge=True)
        assert (receipt.purged, receipt.names) == (True, ())
        assert not files_with(folder, BOB)
        memory.acting(actor="admin").sources.quarantine(EVE)
        receipt = memory.acting(actor="admin").forget(by_actor=EVE, purge=True)
        assert receipt.purged
        assert len(receipt.names) == 1
        assert "1 entries of the audit log name this actor" in receipt.names[0]
        assert "a name stays: 1 entries" in receipt._repr_html_()
        assert receipt.as_dict()["names"] == receipt.names
        assert files_with(folder, EVE)
        assert EVE not in json.dumps([case.query for case in memory.cases.all()])


def test_who_judged_is_named_by_the_audit_log_and_by_nothing_else(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for note in ("", f"I, {EVE}, know better"):
            memory.acting(actor=EVE, namespace=ZOE).review.correct(
                memory.acting(namespace=ZOE).recall("t").episode_id, "s", note=note or None
            )
        receipt = memory.acting(namespace=ZOE).forget(everything=True, purge=True)
        assert "2 entries of the audit log name those who acted in it" in receipt.names[0]
        with engine_of(memory).parts.ledger.connections.read() as connection:
            assert connection.execute("SELECT count(*) FROM action WHERE actor = ?", (EVE,)).fetchone()[0] == 2
            assert connection.execute("SELECT count(*) FROM action WHERE note LIKE ?", (f"%{EVE}%",)).fetchone()[0] == 0
        assert not files_with(folder, ZOE)


def test_in_ram_the_name_goes_as_well():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        live(memory, ZOE)
        assert memory.acting(namespace=ZOE).forget(everything=True, purge=True).names == ()
        assert memory.data.namespaces() == []
        live(memory, ZOE)
        assert memory.acting(namespace=ZOE).stats().episodes == 7
        assert memory.acting(namespace=ZOE).forget(everything=True).names == ()  # without a purge the name stays
        assert memory.data.namespaces() == [ZOE]


def test_an_episode_that_somebody_judged_stays_and_the_receipt_says_so():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        recall = memory.acting(actor="annzqx").recall("cool some mug")
        memory.acting(actor="carl").reward(recall.episode_id, 1.0, solution="fridge", source="human")
        receipt = memory.forget(by_actor="annzqx", purge=True)
        (kept,) = receipt.names
        assert kept.startswith("2 episodes and cases of this actor stay with their texts, since others judged them")
        assert [episode.actor for episode in memory.episodes.all()] == ["annzqx"]
        memory.forget(episode_id=recall.episode_id)
        assert memory.forget(by_actor="annzqx", purge=True).names == ()
