"""A small memory whose files are damaged, and what must hold whatever the damage was."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inside import engine_of
from intensity import times

from cascade_memory.assembly import folder as assembled
from cascade_memory.assembly.ranker_choice import resolve_ranker
from cascade_memory.bandit.similarity import SimilarityPolicy
from cascade_memory.cycle.select import Exposure
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.matchers import ExactMatcher
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import CascadeError
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.backup import LEDGER, SNAPSHOTS
from cascade_memory.memory.memory import Memory
from cascade_memory.memory.options import Retention, Trust
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.stores.index import TieredIndex

HOW_MANY = times(newcomer=8, ci=40, matrix=4_000)  # of each kind
DIMENSION = 8


def opened(path: Path | None, ranker: str = "light", **options: Any) -> Memory:
    """Open a folder as ``CascadeMemory`` does, but for its Chroma: that takes as long as all the rest together."""
    ledger = SQLiteLedger(None if path is None else assembled.ledger_path(path))
    try:
        parts = Parts(
            ledger=ledger,
            embedder=HashingEmbedder(DIMENSION),
            ranker=resolve_ranker(ranker, hindsight=True),
            shadow=None,
            fallback=SimilarityPolicy(),
            matcher=ExactMatcher(),
            hindsight=True,
            index=lambda dimension, _: TieredIndex(dimension),
            snapshots=SnapshotStore(None if path is None else path / SNAPSHOTS),
        )
        engine = Engine(parts, learn="inline", candidates=6)
    except BaseException:
        ledger.close()
        raise
    defaults: dict[str, Any] = {
        "k": 1, "namespace": "default", "reward_fn": None, "exposure": Exposure(), "template": None,
        "retention": Retention(retain_from=("host", "human")), "trust": Trust(), "deadline": None,
    }  # fmt: skip
    return Memory(engine, **{**defaults, **options})


def filled(path: Path, ranker: str = "light") -> None:
    """Make a folder with a little of everything, and close it."""
    memory = opened(path, ranker)
    memory.add([(f"known {i}", f"fix {i}", {"user": f"u{i}", "n": i}) for i in range(3)])
    for i in range(14):
        recall = memory.recall(f"task {i} of kind {i % 4}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 4}", metadata={"user": "u1"})
    memory.recall("still open")
    memory.close()


def case_ids(path: Path) -> set[str]:
    """Return the ids of all cases of a folder."""
    connection = sqlite3.connect(path / LEDGER)
    try:
        return {row[0] for row in connection.execute("SELECT id FROM cases")}
    finally:
        connection.close()


class Canary:
    """Files beside a memory that nobody may touch."""

    def __init__(self, place: Path) -> None:
        self._files = [place / "canary.txt", place / "others" / "policy-1-0000000000000001.npz", place / "others" / "notes"]
        for file in self._files:
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"mine: {file.name}")

    @property
    def file(self) -> Path:
        return self._files[0]

    @property
    def folder(self) -> Path:
        return self._files[1].parent

    def check(self) -> None:
        assert all(file.read_text() == f"mine: {file.name}" for file in self._files)
        assert sorted(os.listdir(self.folder)) == ["notes", "policy-1-0000000000000001.npz"]


def refused(error: BaseException) -> bool:
    """Say whether an exception is one of ours, and a sentence."""
    said = str(error)
    return isinstance(error, CascadeError) and len(said.split()) >= 5


def check_serves(memory: Memory, kept: set[str]) -> None:
    """Everything works, before and after the doctor; of what was acknowledged, ``kept`` is there."""
    engine = engine_of(memory)
    before = memory.recall("task 3 of kind 3")
    assert before.error is None, before.error
    (added,) = memory.add([("a new task", "a new solution")])
    memory.reward(before.episode_id, 1.0, solution="solution 3")
    assert memory.forget(added).cases == 1
    looked = memory.data.examine(fix=True)
    # A query that was edited into another one is whole: its vector tells that it is not what was embedded, and no more.
    wrong = [(check.name, check.detail) for check in looked if not check.ok and check.name not in ("free disk", "vectors")]
    assert wrong == [], wrong
    after = memory.recall("task 3 of kind 3")
    assert after.error is None, after.error
    failures = {step: count for step, count in engine.failures.items() if step != "rows"}
    assert not failures, (failures, engine.last_error)
    with engine.parts.ledger.connections.read() as connection:
        there = {row[0] for row in connection.execute("SELECT id FROM cases")}
    assert kept <= there, kept - there
    assert all(memory.cases.get(case_id) for case_id in sorted(kept)[:3])


def tried(trial: Callable[[], None]) -> str:
    """Run a trial; return "refused" or "served"; anything else raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            trial()
        except CascadeError as error:
            if not refused(error):
                raise AssertionError(f"no sentence: {error!r}") from error
            return "refused"
    return "served"


def each(kind: str, trial: Callable[[int, random.Random], Callable[[], None]], share: int = 1) -> Counter[str]:
    """Try every mutation of a kind, the same ones each time; return how they went, or fail with those that went wrong.

    ``trial`` prepares one and returns what is to be tried; one of ``share`` is tried.
    """
    seen: Counter[str] = Counter()
    wrong: dict[int, str] = {}
    for number in range(0, HOW_MANY, share):
        prepared = trial(number, random.Random(f"{kind} {number}"))
        try:
            seen[tried(prepared)] += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong[number] = f"{type(error).__name__}: {str(error)[:300]}"
    sys.stdout.write(f"{kind}: {dict(seen)}, {len(wrong)} wrong\n")  # seen with pytest -s
    assert not wrong, (len(wrong), dict(list(wrong.items())[:30]))
    return seen


def copied(source: Path, target: Path) -> Path:
    """Return a fresh copy of a folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target
