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
    about: dict[str, Any] = {"namespace": name}
    for number in range(6):
        recall = memory.recall(f"task {number}", metadata={"user": name}, thread_id=name, **about)
        recall.reward(float(number % 2), solution=f"answer {number}")
    memory.search("task 1", **about)
    memory.correct(memory.recall("a hard one", **about).episode_id, "so", note=f"{name} said so", **about)
    memory.forget(memory.add("by hand", "s", **about), **about)
    memory.warnings(**about)


@pytest.mark.parametrize("through", ["python", "cli"])
def test_no_byte_of_its_name_is_left_of_a_namespace_that_was_purged(tmp_path: Path, through: str, capsys: Any):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.add("of others", "stays")
        live(memory, ZOE)
        if through == "python":
            receipt = memory.forget(everything=True, purge=True, namespace=ZOE)
            assert (receipt.purged, receipt.stale, receipt.names) == (True, (), ())
            assert memory.namespaces() == ["default"]
            assert not files_with(folder, ZOE)  # also while it is open
    if through == "cli":
        main(["data", "forget", str(folder), "--everything", "--purge", "--yes", "--namespace", ZOE, "--by", "admin"])
        said = capsys.readouterr().out
        assert "purged: no file" in said
        assert "a name stays: 2 entries of the audit log name those who acted in it" in said
    assert not files_with(folder, ZOE)
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.namespaces() == ["default"]
        assert [case.solution for case in memory.cases()] == ["stays"]
        assert all(check.ok for check in memory.examine())


def test_a_name_that_comes_again_begins_anew(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        numbers = []
        for name in (ZOE, BOB, ZOE):
            live(memory, name)
            numbers.append(engine_of(memory).namespace_id(name))
            kept = memory.stats(namespace=name)
            assert (kept.episodes, kept.recalls) == (7, 8)
            assert {entry.action for entry in memory.audit(namespace=name)} == {"correct", "add", "forget"}
            memory.forget(everything=True, purge=True, namespace=name, by="admin")
            assert list(memory.audit(namespace=name)) == []
        assert len(set(numbers)) == 3
        assert memory.namespaces() == []
        memory.export(tmp_path / "all.jsonl")
    assert ZOE not in (tmp_path / "all.jsonl").read_text()


_ELSEWHERE = """
import sys
from cascade_memory import CascadeMemory
with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline") as memory:
    about = {"namespace": sys.argv[2]}
    memory.recall("before", **about)
    print("ready", flush=True)
    for line in sys.stdin:
        what = line.strip()
        if what == "add":
            memory.add("q", "s", **about)
        elif what == "propose":
            memory.propose("p", "s", **about)
        else:
            memory.recall("r", **about).reward(1.0, solution="t")
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
        receipt = memory.forget(everything=True, purge=True, namespace=ZOE)
        assert receipt.names == ()
        assert memory.namespaces() == []
        for what in (first, "add", "propose", "recall"):
            other.stdin.write(f"{what}\n")
            other.stdin.flush()
            assert other.stdout.readline() == "None\n", what
        other.stdin.close()
        assert memory.namespaces() == [ZOE]
        found = memory.stats(namespace=ZOE)
        assert (found.cases, found.episodes) == (2, {"add": 2, "propose": 3, "recall": 3}[first])
        assert all(check.ok for check in memory.examine())


def test_while_others_write_nothing_that_was_acknowledged_is_lost_and_nothing_is_nameless(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        done: list[str] = []
        purged, stop = threading.Event(), threading.Event()

        def write() -> None:
            while not stop.is_set():
                after = purged.is_set()
                try:
                    case = memory.add(f"q {len(done)} {threading.get_ident()}", "s", namespace=ZOE)
                except (NamespaceForgotten, UnknownEpisode):
                    continue
                if after:
                    done.append(case)

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            memory.forget(everything=True, purge=True, namespace=ZOE)
        purged.set()
        while len(done) < 10:
            stop.wait(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        there = {case.id for case in memory.cases(namespace=ZOE)}
        assert set(done) <= there
        with engine_of(memory).parts.ledger.connections.read() as connection:
            names = {number for (number,) in connection.execute("SELECT id FROM namespace").fetchall()}
            held = {number for (number,) in connection.execute("SELECT DISTINCT namespace FROM cases").fetchall()}
        assert held <= names


def test_an_actor_who_was_undone_is_named_only_where_the_receipt_says(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for name in (BOB, EVE):
            recall = memory.recall(f"task of {name}", actor=name)
            memory.reward(recall.episode_id, 1.0, solution=f"answer of {name}", actor=name, metadata={"user": name})
            memory.add(f"by {name}", "s", actor=name, source="user")
        memory.forget(actor=BOB)  # the note says whose it was, until a purge
        assert any(BOB in (entry.note or "") for entry in memory.audit())
        receipt = memory.forget(actor=BOB, purge=True, by="admin")
        assert (receipt.purged, receipt.names) == (True, ())
        assert not files_with(folder, BOB)
        memory.quarantine(EVE, by="admin")
        receipt = memory.forget(actor=EVE, purge=True, by="admin")
        assert receipt.purged
        assert len(receipt.names) == 1
        assert "1 entries of the audit log name this actor" in receipt.names[0]
        assert "a name stays: 1 entries" in receipt._repr_html_()
        assert receipt.as_dict()["names"] == receipt.names
        assert files_with(folder, EVE)
        assert EVE not in json.dumps([case.query for case in memory.cases()])


def test_who_judged_is_named_by_the_audit_log_and_by_nothing_else(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for note in ("", f"I, {EVE}, know better"):
            memory.correct(memory.recall("t", namespace=ZOE).episode_id, "s", actor=EVE, note=note or None, namespace=ZOE)
        receipt = memory.forget(everything=True, purge=True, namespace=ZOE)
        assert "2 entries of the audit log name those who acted in it" in receipt.names[0]
        with engine_of(memory).parts.ledger.connections.read() as connection:
            assert connection.execute("SELECT count(*) FROM action WHERE actor = ?", (EVE,)).fetchone()[0] == 2
            assert connection.execute("SELECT count(*) FROM action WHERE note LIKE ?", (f"%{EVE}%",)).fetchone()[0] == 0
        assert not files_with(folder, ZOE)


def test_in_ram_the_name_goes_as_well():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        live(memory, ZOE)
        assert memory.forget(everything=True, purge=True, namespace=ZOE).names == ()
        assert memory.namespaces() == []
        live(memory, ZOE)
        assert memory.stats(namespace=ZOE).episodes == 7
        assert memory.forget(everything=True, namespace=ZOE).names == ()  # without a purge the name stays
        assert memory.namespaces() == [ZOE]
