"""Secrets of every kind go into every field of every write: afterwards no byte of them is in any file, log or warning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planted_secrets import ALL, EVERY, found_below, found_in, nothing_is_said

from cascade_memory import CascadeMemory, Retention, Step, Trajectory
from cascade_memory.errors import CascadeError, InvalidInput


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with nothing_is_said(caplog):
        yield


Write = Callable[[CascadeMemory], object]


def _solution() -> Trajectory:
    steps = [
        Step(action=f"type {ALL}", observation=ALL, thought=ALL),
        Step(tool="login", arguments={"all": ALL, "deep": {"list": [ALL, {"in": ALL}]}}, observation="done"),
        Step(tool=f"tool {EVERY[0].text}", arguments={EVERY[1].text: 1}),
        *(Step(action=one.text) for one in EVERY),
    ]
    return Trajectory(steps, answer=ALL)


METADATA: dict[str, Any] = {"text": ALL, "list": [one.text for one in EVERY], EVERY[5].text: 1, "password": "Abcdefg1"}


def _add(memory: CascadeMemory) -> None:
    memory.add(f"one {ALL}", ALL, metadata=METADATA)
    memory.add([(f"many {ALL}", _solution(), METADATA), {"query": f"more {ALL}", "solution": ALL}], progress=False)


def _reward(memory: CascadeMemory) -> None:
    for solution in (ALL, _solution(), list(_solution().steps)):
        recall = memory.recall(f"task {ALL}", metadata=METADATA)
        memory.reward(recall.episode_id, 1.0, solution=solution, metadata=METADATA)
        memory.reward(recall.episode_id, 0.0, solution=ALL, overwrite=True)
        assert recall.query.startswith("task")
        assert found_in(repr(recall)) == []

    memory.reward(memory.recall(f"kept {ALL}").episode_id, 1.0, solution=ALL, metadata=METADATA)


def _search(memory: CascadeMemory) -> None:
    memory.cases.search(f"where is {ALL}?")


def _sessions(memory: CascadeMemory) -> None:
    with memory.episode(f"session {ALL}", metadata=METADATA) as episode:
        episode.solution = ALL
        episode.reward(1.0, metadata=METADATA)
    with pytest.raises(RuntimeError), memory.episode(f"failing {ALL}") as episode:
        raise RuntimeError(ALL)


def _runs(memory: CascadeMemory) -> None:
    for status in ("ok", "error", "cancelled"):
        recall = memory.recall(f"run {ALL}")
        memory.episodes.finish(recall.episode_id, solution=_solution(), status="interrupted")
        memory.end(recall.episode_id, solution=ALL, status=status)


def _agents(memory: CascadeMemory) -> None:
    first, second = memory.review.propose(ALL, ALL, metadata=METADATA), memory.review.propose(f"again {ALL}", _solution())
    seen = {one.id: one.fingerprint for one in memory.review.reported()}
    memory.review.confirm(first, seen=seen[first])
    memory.review.reject(second, seen=seen[second])


def _people(memory: CascadeMemory) -> None:
    case_id = memory.add("a task", "a wrong solution")
    memory.review.correct(case_id, f"right: {ALL}", note=ALL[:1_900])
    recall = memory.recall("another task")
    memory.reward(recall.episode_id, 1.0, solution="wrong")
    memory.review.correct(recall.episode_id, _solution(), note=EVERY[3].text)
    memory.review.undo(next(memory.review.audit()).id)


def _errors(memory: CascadeMemory) -> None:
    memory.data.note_failure("reward", RuntimeError(ALL))
    memory.data.note_failure(f"after {ALL}", RuntimeError("it failed"))
    for call in (
        lambda: memory.recall("task", episode_id=EVERY[2].text),
        lambda: memory.recall("task", thread_id=EVERY[2].text),
        lambda: memory.acting(actor=EVERY[2].text).recall("task"),
        lambda: memory.acting(namespace=EVERY[2].text).recall("task"),
        lambda: memory.acting(namespace=EVERY[2].text).add("task", "solution"),
        lambda: memory.acting(namespace=EVERY[2].text).review.propose("task", "solution"),
        lambda: memory.reward(EVERY[2].text, 1.0),
        lambda: memory.reward("unknown", EVERY[2].text),  # type: ignore[arg-type]
        lambda: memory.add("task", "solution", source=EVERY[2].text),
        lambda: memory.add("task", "solution", metadata={f"${EVERY[2].text}": 1}),
        lambda: memory.add("task", "solution", metadata={EVERY[2].text: object()}),  # type: ignore[dict-item]
        lambda: memory.cases.get(EVERY[2].text),
    ):
        with pytest.raises(CascadeError) as caught:
            call()
        assert found_in(str(caught.value)) == [], str(caught.value)
    health = memory.health()
    assert health.last_error is not None
    assert found_in(repr(health)) == []


WRITES: list[Write] = [_add, _reward, _search, _sessions, _runs, _agents, _people, _errors]


def _named(write: Write) -> str:
    return write.__name__.strip("_")


@pytest.mark.parametrize("write", WRITES, ids=_named)
def test_no_byte_of_a_secret_is_in_any_file(write: Write, tmp_path: Path):
    judge = lambda episode: 1.0 if "Abc" not in str(episode.solution) else None  # noqa: E731
    with CascadeMemory(
        tmp_path / "memory", embedder="hashing", learn="inline", reward_fn=judge, retention=Retention(case_text=_with_solution)
    ) as memory:
        write(memory)
        memory.sync()
        assert found_below(tmp_path) == {}
        memory.data.export(tmp_path / "export.jsonl")
        memory.data.backup(tmp_path / "backup")
        kept = memory.stats().cases
    assert not kept or (tmp_path / "memory" / "chroma").exists()
    assert found_below(tmp_path) == {}


def _with_solution(query: str, solution: object) -> str:
    return f"{query[:20_000]} {EVERY[7].text} {str(solution)[:20_000]}"


@pytest.mark.slow
def test_an_import_brings_none_in(tmp_path: Path):
    export = tmp_path / "outside" / "export.jsonl"
    export.parent.mkdir()
    with CascadeMemory(embedder="hashing", learn="inline", redact=False) as memory:
        for write in WRITES:
            if write not in (_errors, _sessions):
                write(memory)
        memory.data.export(export)
    assert len(found_in(export.read_bytes())) > 30
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        assert memory.data.import_(export) > 20
        memory.sync()
        assert found_below(tmp_path / "memory") == {}
    assert found_below(tmp_path / "memory") == {}


@pytest.mark.parametrize("field", ["id", "thread", "namespace", "actor", "query", "fields"])
def test_a_damaged_or_forged_import_leaves_no_trace_either(field: str, tmp_path: Path):
    with CascadeMemory(embedder="hashing") as memory:
        memory.acting(actor="ann").recall("a task", thread_id="conversation", metadata={"user": "ann"})
        memory.data.export(export := tmp_path / "export.jsonl")
    header, *lines = export.read_text().splitlines()
    forged = [
        json.dumps({**json.loads(line), field: [EVERY[4].text] if field in ("query", "fields") else EVERY[4].text})
        for line in lines
    ]
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        with pytest.raises(InvalidInput) as caught:
            memory.data.import_([header, *forged])
        assert found_in(str(caught.value)) == []
    assert found_below(tmp_path / "memory") == {}


def test_an_embedder_that_quotes_its_text_says_nothing(tmp_path: Path):
    class Quoting:
        identity, dimension = "quoting", 8

        def embed(self, texts: Any) -> Any:
            raise ValueError(f"cannot embed {texts!r} with {ALL}")

    with CascadeMemory(tmp_path / "memory", embedder=Quoting()) as memory:
        recall = memory.recall(f"task {ALL}")
        assert recall.error is not None
        assert found_in(f"{recall.error} {memory.health()}") == []
    assert found_below(tmp_path) == {}
