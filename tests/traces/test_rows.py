"""What becomes of the ids: they go with their episode, and travel with it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_traces import RUNS, SPAN, TRACE, run, span

from cascade_memory import CascadeMemory, restore
from cascade_memory.errors import InvalidInput


def opened(path: Path) -> CascadeMemory:
    return CascadeMemory(path, embedder="hashing", learn="inline")


def is_well(memory: CascadeMemory) -> bool:
    return all(check.ok for check in memory.data.examine())


def traced(memory: CascadeMemory, query: str = "cool some mug", **options: Any) -> str:
    """Recall in a span and in a run, and return the id of the episode."""
    with span():
        episode = memory.recall(query, **options).episode_id
    with run():
        memory.recall(query, episode_id=episode)
    return episode


def holding(folder: Path) -> list[str]:
    """Return the files that hold an id of the trace."""
    ids = [TRACE.encode(), SPAN.encode(), *(one.replace("-", "").encode() for one in RUNS)]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if any(one in file.read_bytes() for one in ids)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "m"


@pytest.fixture
def memory(folder: Path) -> Iterator[CascadeMemory]:
    with opened(folder) as memory:
        yield memory


def _of_episode(memory: CascadeMemory, episode: str, case: str) -> dict[str, Any]:
    del memory, case
    return {"episode_id": episode}


def _of_case(memory: CascadeMemory, episode: str, case: str) -> dict[str, Any]:
    del memory, episode
    return {"case_ids": case}


def _of_metadata(*_: object) -> dict[str, Any]:
    return {"where": {"user": "ann"}}


def _of_actor(*_: object) -> dict[str, Any]:
    return {"by_actor": "ann"}


def _everything(*_: object) -> dict[str, Any]:
    return {"everything": True}


@pytest.mark.parametrize("what", [_of_episode, _of_case, _of_metadata, _of_actor, _everything])
def test_a_purge_leaves_no_byte_of_the_ids(folder: Path, what: Any):
    with opened(folder).acting(actor="ann") as memory:
        episode = traced(memory, metadata={"user": "ann"})
        case = memory.reward(trace_id=TRACE, value=1.0, solution="put it into the fridge")
        assert case is not None
        assert holding(folder)
        assert memory.forget(**what(memory, episode, case), purge=True).purged
        assert memory.traces.episodes(TRACE) == []
        assert holding(folder) == []
        assert is_well(memory)
    assert holding(folder) == []


def test_the_ids_of_other_episodes_stay(memory: CascadeMemory):
    episode = traced(memory)
    with span(span_id="1" * 16):
        other = memory.recall("heat some egg").episode_id
    memory.forget(episode_id=episode)
    assert [one.id for one in memory.traces.episodes(TRACE)] == [other]
    memory.reward(trace_id=TRACE, value=0.0)
    assert is_well(memory)


def test_the_ids_go_with_their_namespace(memory: CascadeMemory):
    episode, elsewhere = traced(memory), memory.acting(namespace="elsewhere")
    traced(elsewhere)
    elsewhere.forget(everything=True)
    assert elsewhere.traces.episodes(TRACE) == []
    assert len(memory.traces.of(episode)) == 2
    assert is_well(memory)


def test_an_export_brings_them_along_once(memory: CascadeMemory, tmp_path: Path):
    episode = traced(memory)
    before = memory.traces.of(episode)
    memory.data.export(tmp_path / "exported.jsonl")
    with opened(tmp_path / "other") as other:
        other.data.import_(tmp_path / "exported.jsonl")
        other.data.import_(tmp_path / "exported.jsonl")
        assert other.traces.of(episode) == before
        other.reward(trace_id=RUNS[0], value=0.0)
        assert is_well(other)


def test_an_export_from_before_traces_is_read(memory: CascadeMemory, tmp_path: Path):
    traced(memory)
    memory.data.export(tmp_path / "exported.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "exported.jsonl").read_text(encoding="utf-8").splitlines()]
    without = [json.dumps({name: value for name, value in line.items() if name != "spans"}) for line in lines]
    (tmp_path / "exported.jsonl").write_text("\n".join(without) + "\n", encoding="utf-8")
    with opened(tmp_path / "other") as other:
        other.data.import_(tmp_path / "exported.jsonl")
        assert other.traces.episodes(TRACE) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trace_id", TRACE.upper()),
        ("trace_id", TRACE + "0"),
        ("trace_id", "x" * 32),
        ("trace_id", "0" * 100_000),
        ("trace_id", TRACE + "\n"),
        ("trace_id", None),
        ("trace_id", 7),
        ("span_id", "<script>"),
        ("span_id", "0" * 17),
        ("span_id", ["0" * 16]),
        ("host", "somebody"),
        ("host", {}),
    ],
)
def test_a_file_from_outside_brings_no_other_value(memory: CascadeMemory, tmp_path: Path, name: str, value: Any):
    traced(memory)
    memory.data.export(tmp_path / "exported.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "exported.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for one in line.get("spans", []):
            one[name] = value
    (tmp_path / "exported.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with opened(tmp_path / "other") as other:
        with pytest.raises(InvalidInput, match=f"nothing was imported|{name}"):
            other.data.import_(tmp_path / "exported.jsonl")
        assert list(other.episodes.all()) == []


def test_a_file_that_says_the_same_twice_is_refused(memory: CascadeMemory, tmp_path: Path):
    traced(memory)
    memory.data.export(tmp_path / "exported.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "exported.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.get("spans", []).extend(line.get("spans", [])[:1])
    (tmp_path / "exported.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with opened(tmp_path / "other") as other, pytest.raises(InvalidInput, match="nothing was imported"):
        other.data.import_(tmp_path / "exported.jsonl")


def test_a_backup_holds_them(memory: CascadeMemory, tmp_path: Path):
    episode = traced(memory)
    memory.data.backup(tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with opened(tmp_path / "restored") as other:
        assert other.traces.of(episode) == memory.traces.of(episode)


def _edited(folder: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as ledger, ledger:
        for statement in statements:
            ledger.execute(statement)


@pytest.mark.parametrize("value", ["trace_id = 'x'", "span_id = x'ff'", "host = 'somebody'", "span_id = ''"])
def test_a_row_that_somebody_has_edited_is_left_out_and_removed(folder: Path, value: str):
    with opened(folder) as memory:
        episode = traced(memory)
    _edited(folder, f"UPDATE span SET {value} WHERE host = 'langsmith'")
    with opened(folder) as memory:
        assert [one.host for one in memory.traces.of(episode)] == ["opentelemetry"]
        assert not is_well(memory)
        memory.data.examine(fix=True)
        assert [one.host for one in memory.traces.of(episode)] == ["opentelemetry"]
        assert is_well(memory)


def test_a_memory_that_was_made_before_traces_opens(folder: Path):
    with opened(folder) as memory:
        memory.add("cool some mug", "put it into the fridge")
    _edited(folder, "DROP TABLE span", "DELETE FROM sqlite_sequence WHERE name = 'span'")
    with opened(folder) as memory:
        episode = traced(memory)
        assert len(memory.traces.of(episode)) == 2
        assert is_well(memory)


def test_a_trace_is_looked_up_in_its_index(folder: Path):
    with opened(folder) as memory:
        traced(memory)
    plan = "EXPLAIN QUERY PLAN SELECT episode FROM span WHERE namespace = 1 AND trace_id = 'x'"
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as ledger:
        assert "span_trace" in str(ledger.execute(plan).fetchall())
