"""What a newcomer gets wrong, and what is said then: one line that says what to do, and nothing is made."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory, Retention
from cascade_memory.cli import main
from cascade_memory.cli.main import parser
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.mcp_server.verbs import Verbs


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Run a command that is refused; return what it says, which must be one line."""
    assert main([str(word) for word in words]) == 2
    error = capsys.readouterr().err.strip()
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize("verb", ["export", "import"])
def test_one_name_where_two_are_needed(verb: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CASCADE_MEMORY_URL", raising=False)
    error = said(capsys, "data", verb, tmp_path / "memory")
    assert f"cascade-memory data {verb} MEMORY FILE, where FILE may be -" in error
    assert not [*tmp_path.iterdir()]


def test_a_file_where_a_memory_is_meant(tmp_path: Path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert "is a file, and a memory is a folder" in said(capsys, "show", "stats", tmp_path / "notes.txt")


def test_a_port_that_somebody_uses(tmp_path: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        error = said(capsys, "serve", "mcp", "--path", tmp_path / "memory", "--transport", "http", "--port", port)
    assert f"cannot listen on 127.0.0.1, port {port}" in error
    assert "pass another port with --port" in error
    assert not (tmp_path / "memory").exists()


def test_a_server_without_its_extra(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp" or name.startswith("cascade_memory.mcp_server.")]:
        monkeypatch.delitem(sys.modules, name)
    import cascade_memory.mcp_server as package

    monkeypatch.delitem(vars(package), "build", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.types", None)
    assert main(["serve", "mcp", "--path", str(tmp_path / "memory")]) == 1
    assert 'pip install "cascade-memory[mcp]"' in capsys.readouterr().err
    assert not (tmp_path / "memory").exists()


def test_a_database_without_its_extra(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "cascade_memory.assembly.database", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r'^a memory in PostgreSQL needs the extra "postgres": pip install'):
        CascadeMemory("postgresql://localhost/memory")


def test_what_is_no_solution(ram: CascadeMemory):
    with pytest.raises(InvalidInput, match=r"solution is empty; pass what solved the task"):
        ram.add("a", "")
    for wrong in (None, {"a": 1}):
        with pytest.raises(InvalidInput, match="a solution is a string, a Trajectory or a list of steps, not"):
            ram.add("a", wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a solution is a string, a Trajectory or a list of steps, not dict"):
        ram.reward(ram.recall("a").episode_id, 1.0, solution={"a": 1})  # type: ignore[arg-type]


def test_forgetting_without_saying_what(ram: CascadeMemory):
    with pytest.raises(InvalidInput, match="say what to forget, in one way only: case_ids, where="):
        ram.forget()


def test_other_limits_than_those_it_is_open_with(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing"), pytest.raises(InvalidInput, match="max_cases=None and ttl=None"):
        CascadeMemory(tmp_path, embedder="hashing", retention=Retention(max_cases=5))


def test_a_folder_that_may_only_be_read_is_used_and_closed_without_noise(tmp_path: Path, monkeypatch, caplog):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        for i in range(10):
            memory.reward(memory.recall(f"reset router {i}").episode_id, 1.0, solution="hold the button")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        assert memory.health().read_only
        with pytest.warns(RuntimeWarning, match=r"could not store a recall \(.*; it was not written down"):
            assert memory.recall("write a poem about autumn").cases == ()
        with pytest.warns(RuntimeWarning, match="its cases are shown, but it was not written down"):
            assert memory.recall("reset router 3").cases
        assert "could not" not in caplog.text
        caplog.clear()
        assert memory.cases.search("reset router 3").cases  # which stores nothing anyway
        assert caplog.text == ""
        (found,) = [check for check in memory.data.examine() if check.name == "writable"]
        assert (found.ok, found.detail) == (False, memory.health().read_only)
        with pytest.warns(RuntimeWarning, match="was not written down"):
            answer = Verbs(memory).recall_cases("reset router 3")
        assert answer["cases"]
        assert "there is no episode to report on" in answer["about"]
    assert "snapshot" not in caplog.text


def test_a_folder_is_named_with_or_without_an_option(tmp_path: Path, capsys):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("reset the router", "hold the button for 10 s")
    for words in (["show", "stats", str(tmp_path / "memory")], ["show", "stats", "--path", str(tmp_path / "memory")]):
        assert main(words) == 0
        assert "1 distinct solution" in capsys.readouterr().out
    for words in (["serve", "mcp", str(tmp_path / "memory")], ["serve", "mcp", "--path", str(tmp_path / "memory")]):
        assert parser().parse_args(words).path == str(tmp_path / "memory")
    assert parser().parse_args(["serve", "mcp"]).path is None


@pytest.mark.parametrize("ranker", ["auto", "./reranker"])
def test_nothing_is_made_of_a_memory_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranker: str):
    missing = MissingExtra("no weights here")

    def no_embedder() -> object:
        raise missing

    if ranker == "auto":
        monkeypatch.setattr("cascade_memory.assembly.embedders.default_embedder", no_embedder)
    with pytest.raises((MissingExtra, InvalidInput), match=r"no weights here|there is no folder './reranker'"):
        CascadeMemory(tmp_path / "memory", ranker=ranker, embedder="auto" if ranker == "auto" else "hashing")
    assert not (tmp_path / "memory").exists()


def test_a_cross_encoder_without_its_extra_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    with pytest.raises(MissingExtra, match=r'pip install "cascade-memory\[cross-encoder\]"'):
        CascadeMemory(tmp_path / "memory", embedder="hashing", ranker="owner/reranker")
    assert not (tmp_path / "memory").exists()


def test_a_picture_that_is_asked_for_and_cannot_be_drawn(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "demo", "--tasks", "20", "--plot", str(tmp_path / "picture.png")]) == 1
    out, error = capsys.readouterr()
    assert 'pip install "cascade-memory[plot]"' in error
    assert not out


def test_a_benchmark_that_is_refused_makes_no_folder(tmp_path: Path, capsys):
    out = tmp_path / "new" / "results" / "rows.jsonl"
    assert "no-such-task" in said(capsys, "bench", "run", "--tasks", "no-such-task", "--out", out)
    assert not (tmp_path / "new").exists()
