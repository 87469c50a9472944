"""Kill a memory while it undoes a source, and while it moves between a folder and a database: nothing is half done.

``python tests/torture/undo_and_move.py --rounds 100`` prints one line of JSON and exits with 1 if anything was wrong.
Without PostgreSQL (``--no-moves``) only the undo is tried.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import chromadb  # noqa: F401 - before the forks, which then need not
from forks import Child, finished, left_behind, say
from poisoned import HONEST, POISONER

from cascade_memory import CascadeMemory, Retention
from cascade_memory.assembly.move import move
from cascade_memory.engine.mirror_projection import CHANGED
from cascade_memory.errors import CascadeError
from cascade_memory.ledger.schema import TABLES

_OPTIONS: dict[str, Any] = {"embedder": "hashing", "learn": "inline"}
_NUMBER = re.compile(r"[0-9a-f]{8}-[0-9a-f-]+|\d[\d.]*")
_CAPACITY, _HONEST, _POISONED = 40, 40, 60
State = list[Any]


def _memory(place: str) -> CascadeMemory:
    return CascadeMemory(place, retention=Retention(max_cases=_CAPACITY), **_OPTIONS)


def fill(place: str, pipe: int) -> None:
    """Let a poisoner drive out what others have stored."""
    with _memory(place) as memory:
        for actor, count in ((HONEST, _HONEST), (POISONER, _POISONED)):
            for i in range(count):
                recall = memory.acting(actor=actor).recall(f"{actor} has the question {i} about {actor}{i % 5}")
                recall.reward(1.0, solution=f"{actor} says {i}")
    say(pipe, "filled")


def state(memory: CascadeMemory) -> State:
    """Return what people would notice: the cases, whose they are, the episodes and their rewards, what was decided."""
    stats = memory.stats()
    cases = sorted([case.query, str(case.solution), case.actor, case.shown, case.succeeded] for case in memory.cases.all())
    sources = sorted([row.actor, row.episodes, row.outcomes] for row in memory.sources.all())
    decided = [[entry.action, entry.note] for entry in memory.review.audit()]
    return [cases, sources, decided, stats.episodes, stats.rewards, len(memory.cases.expired(why="evicted"))]


def undo(place: str, purge: bool, pipe: int) -> None:
    """Undo the poisoner, and say so."""
    with _memory(place) as memory:
        say(pipe, "begun")
        memory.forget(by_actor=POISONER, purge=purge)
        say(pipe, "done")


def look(place: str, purge: bool, again: bool, pipe: int) -> None:
    """Report the state, what is wrong, and with ``again`` the state after the undo was repeated."""
    with _memory(place) as memory:
        before = state(memory)
        if again:
            memory.forget(by_actor=POISONER, purge=purge)
        memory.sync()
        # What is looked at is a copied folder: its Chroma is not trusted, and built anew when it is needed.
        checks = [check for check in memory.data.examine() if not (check.ok or check.detail.startswith(CHANGED))]
        wrong = [f"{check.name}: {check.detail}" for check in checks]
        after = state(memory)
        if f"{HONEST} has the question" not in str(memory.cases.search(f"{HONEST} has the question 3", k=3).cases):
            wrong.append("a search does not find what is there")
    if again and purge:
        found = [file.name for file in Path(place).rglob("*") if file.is_file() and b"mallory says" in file.read_bytes()]
        wrong += [f"a byte of what was purged is in {name}" for name in found]
    say(pipe, json.dumps([before, after, wrong]))


def _said(report: list[str]) -> tuple[State, State, list[str]]:
    try:
        before, after, wrong = json.loads(report[-1])
    except (ValueError, IndexError):
        return [], [], [f"the one who looks failed: {report[-1:]}"]
    return before, after, wrong


def _killed(work: Callable[[int], None], seconds: float, until_begun: bool) -> tuple[list[str], float]:
    """Let somebody work, kill it some time after it has begun; return what it said, and how long it went on."""
    child, said = Child(work), []
    while until_begun and "begun" not in said and not child.ended():
        said += child.lines()
        time.sleep(0.0005)
    began = time.monotonic()
    while not child.ended() and time.monotonic() - began < seconds and "done" not in said:
        said += child.lines()
        time.sleep(0.0005)
    took = time.monotonic() - began
    child.kill()
    said += child.lines()
    child.close()
    return said, took


class Torture:
    """Counts what was killed and what was wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._rng = folder, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self._template = folder / "template"
        finished(partial(fill, str(self._template)))

    def _complain(self, what: str, wrong: list[str]) -> None:
        self.wrong.update(f"{what}: {_NUMBER.sub('#', one)[:300]}" for one in wrong)

    def _copy(self, name: str) -> Path:
        target = self._folder / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._template, target)
        return target

    def undos(self, rounds: int) -> None:
        """Kill while a source is undone, every second time with a purge; nothing or all is undone, and it can be repeated."""
        for purge in (False, True):
            clean = self._copy("clean")
            untouched, _, wrong = _said(finished(partial(look, str(clean), purge, False)))
            self._complain("before", wrong)
            said, seconds = _killed(partial(undo, str(clean), purge), 60.0, True)
            assert "done" in said, said
            undone, _, wrong = _said(finished(partial(look, str(clean), purge, False)))
            self._complain("undone", wrong)
            assert untouched != undone
            for _ in range(rounds // 2):
                place = self._copy("killed")
                said, _ = _killed(partial(undo, str(place), purge), self._rng.random() * seconds * 1.1, True)
                found, repeated, wrong = _said(finished(partial(look, str(place), purge, True)))
                self.counts["killed before it said so"] += "done" not in said
                self.counts["undone by then"] += found[:2] == undone[:2]
                self._complain("undo", wrong)
                # With a purge the audit log has an entry for each of its two halves.
                if found not in (untouched, undone) and not (purge and _without_decisions(found) == _without_decisions(undone)):
                    self._complain("undo", ["half is undone"])
                if "done" in said and found != undone:
                    self._complain("undo", ["acknowledged, and not undone"])
                if _without_decisions(repeated) != _without_decisions(undone):
                    self._complain("undo", ["repeated, it is not as if it had not been killed"])
                self.counts["leftovers"] += left_behind(str(place))

    def moves(self, rounds: int, new_database: Callable[[], str]) -> None:
        """Kill while a memory moves to a database and back; the source stays, and the target is there wholly or not at all."""
        expected = _rows(self._template)
        url = new_database()
        _, seconds = _killed(partial(_move, str(self._template), url), 60.0, True)
        for number in range(rounds):
            target = self._folder / "moved"
            shutil.rmtree(target, ignore_errors=True)
            source, to = (url, str(target)) if number % 2 else (str(self._copy("killed")), new_database())
            said, _ = _killed(partial(_move, source, to), self._rng.random() * seconds * 0.6, True)
            self.counts["moves killed before they said so"] += "done" not in said
            report = finished(partial(_move_again, source, to))
            if report[-1:] == ["there"]:
                self.counts["moved by then"] += 1
            elif report[-1:] != ["done"]:
                self._complain("move", report[-1:] or ["nothing was said"])
            if "done" in said and report[-1:] != ["there"]:
                self._complain("move", ["acknowledged, and not there"])
            if number % 2 == 0:
                if _rows(self._folder / "killed") != expected:
                    self._complain("move", ["the source was changed"])
                shutil.rmtree(target, ignore_errors=True)
                back = finished(partial(_move, to, str(target)))
                if back[-1:] != ["done"]:
                    self._complain("move", [f"it does not come back: {back[-1:]}"])
            if _rows(target) != expected:
                self._complain("move", ["what arrived is not what was there"])
            _, _, wrong = _said(finished(partial(look, str(target), False, True)))
            self._complain("moved", wrong)


def _without_decisions(found: State) -> State:
    return [*found[:2], *found[3:]]


def _move(source: str, target: str, pipe: int) -> None:
    say(pipe, "begun")
    move(source, target, progress=False)
    say(pipe, "done")


def _move_again(source: str, target: str, pipe: int) -> None:
    """Move once more, unless the first attempt was complete; the server may need a moment to notice that a client died."""
    deadline = time.monotonic() + 10
    while True:
        try:
            move(source, target, progress=False)
        except CascadeError as error:
            if "there is a memory in" in str(error):
                return say(pipe, "there")
            if time.monotonic() > deadline:
                return say(pipe, f"{type(error).__name__}: {error}")
            time.sleep(0.1)
        else:
            return say(pipe, "done")


def _rows(folder: Path) -> dict[str, list[str]]:
    """Return all rows of a ledger, but what each memory has for itself."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection:
        found = {
            table.name: sorted(map(repr, connection.execute(f"SELECT {table.listed} FROM {table.name}"))) for table in TABLES
        }
    own = ("('identity", "('generation", "('mirror", "('running")
    found["meta"] = [row for row in found["meta"] if not row.startswith(own)]
    return found


def run(rounds: int, seed: int, folder: Path, *, moves: bool) -> dict[str, Any]:
    """Do all rounds; return what is printed."""
    began = time.perf_counter()
    torture = Torture(folder, seed)
    torture.undos(rounds)
    if moves:
        from cluster import cluster

        with cluster() as server:
            torture.moves(rounds, server.new_database)
    took = round(time.perf_counter() - began, 1)
    return {"rounds": rounds, **torture.counts, "wrong": dict(torture.wrong), "took_s": took}


def main() -> int:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-moves", action="store_true", help="without PostgreSQL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="undo") as folder:
        summary = run(options.rounds, options.seed, Path(folder), moves=not options.no_moves)
    sys.stdout.write(json.dumps(summary) + "\n")
    return 1 if summary["wrong"] or summary.get("leftovers") else 0


if __name__ == "__main__":
    sys.exit(main())
