"""``data doctor --secrets`` finds in a database what it finds in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from invented_secrets import Invented

from cascade_memory import CascadeMemory, Retention, Step, Trajectory
from cascade_memory.cli import main

TOKEN, WORD = "gh" + "p_" + Invented(41).of(36), Invented(42).of(14)


def filled(url: str) -> dict[tuple[str, str], str | None]:
    """Fill a database as an older version would have; return what should be found: (kind, where) -> id."""
    with CascadeMemory(url, embedder="hashing", learn="inline", redact=False, retention=Retention(ttl=3.0)) as memory:
        aside = memory.add(f"old {TOKEN}", f"password={WORD}")
        time.sleep(3.1)  # it is kept for as long again
        memory.recall("anything")
        memory.sync()
        assert [one.id for one in memory.cases.expired()] == [aside]
    with CascadeMemory(url, embedder="hashing", learn="inline", redact=False) as memory:
        case_id = memory.add(f"use {TOKEN}", Trajectory([Step(tool="login", arguments={"password": WORD})]))
        memory.recall(f"task {TOKEN}", episode_id="run", metadata={"password": WORD}, thread_id=TOKEN)
        memory.episodes.finish("run", solution=f"password={WORD}")
        memory.cases.search(f"where is {TOKEN}?")
        settled = memory.recall("settled").episode_id
        memory.reward(settled, 0.0, solution=TOKEN, metadata={"by": TOKEN})
    return {
        ("github-token", "case task"): case_id,
        ("password", "case solution"): case_id,
        ("github-token", "episode task"): "run",
        ("password", "episode metadata"): "run",
        ("github-token", "episode thread"): "run",
        ("password", "attempt solution"): "run",
        ("github-token", "search task"): None,
        ("github-token", "outcome solution"): settled,
        ("github-token", "outcome metadata"): settled,
        ("github-token", "expired task"): aside,
        ("password", "expired solution"): aside,
    }


def test_every_place_is_named_and_no_secret_is(new_database: Callable[[], str], capsys: pytest.CaptureFixture[str]):
    url = new_database()
    expected = filled(url)
    assert main(["data", "doctor", url, "--secrets", "--json"]) == 1
    said = capsys.readouterr().out
    assert {(one["kind"], one["where"]): one["id"] for one in json.loads(said)["secrets"]} == expected
    assert main(["data", "doctor", url, "--secrets"]) == 1
    said += capsys.readouterr().out
    assert TOKEN not in said
    assert WORD not in said


def test_forgetting_what_it_names_makes_it_content(new_database: Callable[[], str], capsys: pytest.CaptureFixture[str]):
    url = new_database()
    filled(url)
    with CascadeMemory(url, embedder="hashing") as memory:
        memory.forget(everything=True)
    assert main(["data", "doctor", url, "--secrets"]) == 0
    assert "no secrets found in the database" in capsys.readouterr().out


def test_what_comes_in_by_the_door_holds_none(new_database: Callable[[], str]):
    with CascadeMemory(new_database(), embedder="hashing") as memory:
        memory.add(f"use {TOKEN}", f"password={WORD}", metadata={"password": WORD})
        memory.recall(f"use {TOKEN}")
        assert memory.data.find_secrets() == []
