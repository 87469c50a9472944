"""``data doctor --secrets`` finds what an older version has let in, and says nothing of it but where it is."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from pathlib import Path

import pytest
from clocks import Clocks
from invented_secrets import Invented

from cascade_memory import CascadeMemory, Retention, Step, Trajectory
from cascade_memory.cli import main
from cascade_memory.domain.actions import COUNTED
from cascade_memory.errors import InvalidInput

TOKEN, WORD = "gh" + "p_" + Invented(31).of(36), Invented(32).of(14)


def opened(path: Path | None, **options: object) -> CascadeMemory:
    return CascadeMemory(path, **{"embedder": "hashing", "learn": "inline", **options})  # type: ignore[arg-type]


def filled(path: Path | None) -> dict[tuple[str, str], str | None]:
    """Fill a memory as an older version would have; return what should be found: (kind, where) -> id."""
    with opened(path, redact=False) as memory:
        case_id = memory.add(
            f"use {TOKEN}", Trajectory([Step(tool="login", arguments={"password": WORD})]), metadata={"by": TOKEN}
        )
        memory.recall(f"task {TOKEN}", episode_id="run", metadata={"password": WORD}, thread_id=TOKEN)
        memory.episodes.finish("run", solution=f"password={WORD}")
        memory.cases.search(f"where is {TOKEN}?")
        settled = memory.recall("settled").episode_id
        memory.reward(settled, 0.0, solution=TOKEN, metadata={"by": TOKEN})
        other = memory.add("other", "wrong")
        memory.review.correct(other, "right", note=TOKEN)
    return {
        ("github-token", "case task"): case_id,
        ("password", "case solution"): case_id,
        ("github-token", "case metadata"): case_id,
        ("github-token", "case additions"): case_id,
        ("github-token", "episode task"): "run",
        ("password", "episode metadata"): "run",
        ("github-token", "episode thread"): "run",
        ("password", "attempt solution"): "run",
        ("github-token", "search task"): None,
        ("github-token", "outcome solution"): settled,
        ("github-token", "outcome metadata"): settled,
    }


def test_every_place_is_named_and_no_secret_is(tmp_path: Path):
    expected = filled(tmp_path)
    with opened(tmp_path) as memory:
        found = memory.data.find_secrets()
    places = {(one.kind, one.where): one.id for one in found}
    note = places.pop(("github-token", "action note"))
    assert places == expected
    assert note is not None
    assert {one.namespace for one in found} == {"default"}
    assert TOKEN not in repr(found)
    assert WORD not in repr(found)


def test_cases_that_were_set_aside_are_looked_at_too(clocks: Clocks):
    with opened(None, redact=False, retention=Retention(ttl=10.0)) as memory:
        case_id = memory.add(f"use {TOKEN}", f"password={WORD}")
        clocks.pass_for(memory, 11.0)
        memory.recall("anything")
        memory.sync()
        assert [one.id for one in memory.cases.expired()] == [case_id]
        places = {(one.kind, one.where, one.id) for one in memory.data.find_secrets()}
    assert {("github-token", "expired task", case_id), ("password", "expired solution", case_id)} <= places


def test_the_command_counts_them_and_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    expected = filled(tmp_path)
    assert main(["data", "doctor", str(tmp_path), "--secrets"]) == 1
    said = capsys.readouterr().out
    assert "github-token" in said
    assert "--purge" in said
    assert TOKEN not in said
    assert WORD not in said
    assert main(["data", "doctor", str(tmp_path), "--secrets", "--json"]) == 1
    listed = json.loads(capsys.readouterr().out)
    assert {(one["kind"], one["where"]) for one in listed["secrets"]} >= set(expected)


def test_forgetting_what_it_names_makes_it_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    filled(tmp_path)
    with opened(tmp_path) as memory:
        for one in memory.data.find_secrets():
            if one.where.startswith("case") and one.id in memory:
                memory.forget(one.id)
            elif one.id is not None and memory.episodes.knows(one.id):
                memory.forget(episode_id=one.id)
        for case in list(memory.cases.all()):
            memory.forget(case.id)
        memory.forget(purge=True)
    assert main(["data", "doctor", str(tmp_path), "--secrets"]) == 0
    assert "no secrets found" in capsys.readouterr().out
    assert not any(TOKEN.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_the_names_of_counts_are_looked_at_and_none_of_somebody_else_comes_in(tmp_path: Path):
    with opened(tmp_path) as memory:
        memory.review.correct(memory.add("other", "wrong"), "right")
        memory.data.export(file := io.StringIO(), progress=False)
        records = [json.loads(line) for line in file.getvalue().splitlines()]
        for name in (TOKEN, "a text of somebody"):
            for record in records:
                if record.get("kind") == "action":
                    record.update(id=f"new {record['id'][:8]}", counts={name: 1})
            with pytest.raises(InvalidInput, match="name of a count") as refused:
                memory.data.import_([json.dumps(record) for record in records], progress=False)
            assert TOKEN not in str(refused.value)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as ledger, ledger:
        ledger.execute("UPDATE action SET counts = ? WHERE kind = 'correct'", (json.dumps({TOKEN: 1}),))
    with opened(tmp_path) as memory:
        entry = next(entry for entry in memory.review.audit() if entry.action == "correct")
        assert [(one.kind, one.where, one.id) for one in memory.data.find_secrets()] == [
            ("github-token", "action counts", entry.id)
        ]


def test_every_name_of_a_count_that_is_written_may_be_imported():
    with opened(None, retention=Retention(max_cases=6)) as memory:
        for number in range(8):
            memory.reward(memory.acting(actor="ann").recall(f"task {number}").episode_id, 1.0, solution=f"solution {number}")
        memory.cases.bring_back(memory.cases.expired(why="evicted")[-1].id)
        first, second = memory.add([("a", "wrong"), ("a", "right")], progress=False)
        memory.cases.hide(second)
        memory.review.correct(first, "right")
        episode = memory.recall("task 9").episode_id
        case_id = str(memory.reward(episode, 1.0, solution="wrong"))
        memory.cases.pin(case_id)
        memory.cases.hide(case_id)
        memory.review.correct(episode, "right")
        memory.forget(by_actor="ann")
        memory.data.export(file := io.StringIO(), progress=False)
        written = {name for entry in memory.review.audit() for name in entry.counts}
    with opened(None) as other:
        other.data.import_(file.getvalue().splitlines(), progress=False)
        written |= {name for entry in other.review.audit() for name in entry.counts}
        other.data.export(file := io.StringIO(), progress=False)
    with opened(None) as third:
        third.data.import_(file.getvalue().splitlines(), progress=False)
        assert written <= {name for entry in third.review.audit() for name in entry.counts} <= set(COUNTED)


def test_placeholders_are_no_secrets(tmp_path: Path):
    with opened(tmp_path) as memory:
        memory.add(f"use {TOKEN}", f"password={WORD}", metadata={"password": WORD})
        memory.recall(f"use {TOKEN}")
        assert memory.data.find_secrets() == []
