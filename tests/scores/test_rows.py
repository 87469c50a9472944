"""What becomes of stored scores: they go with their episode, and travel with it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scored import opened, recalled, score

from cascade_memory import CascadeMemory, restore
from cascade_memory.capabilities.scores import Score
from cascade_memory.errors import InvalidInput

NAME, FEEDBACK, WHO = "a-name-like-no-other", "an-id-like-no-other", "somebody-like-nobody-else"


def given(number: int = 1, **fields: Any) -> Score:
    return score(number, **{"name": NAME, "id": FEEDBACK, "judge": "human", "by": WHO, **fields})


def is_well(memory: CascadeMemory) -> bool:
    return all(check.ok for check in memory.data.examine())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "m"


@pytest.fixture
def memory(folder: Path) -> Iterator[CascadeMemory]:
    with opened(folder) as memory:
        yield memory


def holding(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if any(one.encode() in file.read_bytes() for one in (NAME, FEEDBACK))]


@pytest.mark.parametrize(
    "what",
    [
        lambda episode, case: {"episode_id": episode},
        lambda episode, case: {"case_ids": case},
        lambda episode, case: {"by_actor": WHO},
        lambda episode, case: {"everything": True},
    ],
)
def test_a_purge_leaves_no_byte_of_a_score(folder: Path, what: Callable[[str, str], Any]):
    with opened(folder) as memory:
        episode = recalled(memory, 1)
        memory.scores.collect([given(value=0.5), given(at=1.7e9 + 1), given()])
        (case,) = memory.cases.all()
        assert holding(folder)
        assert memory.forget(**what(episode, case.id), purge=True).purged
        assert memory.scores.known("mine") == []
        assert memory.stats().rewards == 0
        assert is_well(memory)
    assert holding(folder) == []


def test_a_namespace_sees_only_its_own(memory: CascadeMemory):
    recalled(memory, 1)
    elsewhere = memory.acting(namespace="elsewhere")
    recalled(elsewhere, 2)
    assert memory.scores.collect([given(1), given(2)]).unknown == 1
    assert elsewhere.scores.collect([given(1), given(2)]).unknown == 1
    assert [len(one.scores.known("mine")) for one in (memory, elsewhere)] == [1, 1]
    elsewhere.forget(everything=True)
    assert [len(one.scores.known("mine")) for one in (memory, elsewhere)] == [1, 0]
    assert is_well(memory)


def test_an_export_brings_them_along_and_they_are_revised_there(memory: CascadeMemory, tmp_path: Path):
    episode = recalled(memory, 1)
    memory.scores.collect([given(), given(id="2", judge="judge", value=0.0)])
    memory.data.export(tmp_path / "exported.jsonl")
    with opened(tmp_path / "other") as other:
        for _ in range(2):
            other.data.import_(tmp_path / "exported.jsonl")
        assert other.scores.of(episode) == memory.scores.of(episode)
        assert other.scores.collect([given()]).rewarded == 0
        other.scores.collect([given(deleted=True)])
        assert other.episodes.rewards() == [(0.0, False)]
        assert is_well(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("platform", None), ("platform", "x" * 65), ("feedback", 7), ("feedback", ""), ("name", "x" * 100_000), ("value", 2)),
        *(
            ("value", True),
            ("judge", "somebody"),
            ("correction", "the text itself"),
            ("deleted", 2),
            ("at", 1e300),
            ("at", "now"),
        ),
        *(("actor", []), ("trace_id", "x" * 65), ("span_id", {})),
    ],
)
def test_a_file_from_outside_brings_no_other_value(memory: CascadeMemory, tmp_path: Path, name: str, value: Any):
    recalled(memory, 1)
    memory.scores.collect([given()])
    memory.data.export(tmp_path / "exported.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "exported.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for one in line.get("scores", []):
            one[name] = value
    (tmp_path / "exported.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with opened(tmp_path / "other") as other:
        with pytest.raises(InvalidInput, match=f"nothing was imported|{name}"):
            other.data.import_(tmp_path / "exported.jsonl")
        assert list(other.episodes.all()) == []


def test_a_backup_holds_them(memory: CascadeMemory, tmp_path: Path):
    episode = recalled(memory, 1)
    memory.scores.collect([given()])
    memory.data.backup(tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with opened(tmp_path / "restored") as other:
        assert other.scores.of(episode) == memory.scores.of(episode)


def _edited(folder: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as ledger, ledger:
        for statement in statements:
            ledger.execute(statement)


@pytest.mark.parametrize(
    "value", ["value = 7", "judge = 'nobody'", "at = 'x'", "platform = x'ff'", "correction = 'x'", "deleted = -1"]
)
def test_a_row_that_somebody_has_edited_is_left_out_and_removed(folder: Path, value: str):
    with opened(folder) as memory:
        episode = recalled(memory, 1)
        memory.scores.collect([given(), given(id="2", value=0.0)])
    _edited(folder, f"UPDATE score SET {value} WHERE feedback = '2'")
    with opened(folder) as memory:
        assert [one.id for one in memory.scores.of(episode)] == [FEEDBACK]
        assert memory.scores.collect([given()]).rewarded == 1
        assert memory.episodes.rewards() == [(1.0, False)]
        assert not is_well(memory)
        memory.data.examine(fix=True)
        assert is_well(memory)
        memory.scores.collect([given(id="2", value=0.0)])
        assert memory.episodes.rewards() == [(0.5, False)]


def test_a_memory_that_was_made_before_scores_opens(folder: Path):
    with opened(folder) as memory:
        recalled(memory, 1)
    _edited(folder, "DROP TABLE score", "DELETE FROM sqlite_sequence WHERE name = 'score'")
    with opened(folder) as memory:
        assert memory.scores.collect([given()]).rewarded == 1
        assert is_well(memory)
