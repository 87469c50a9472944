"""Kills of a large folder, whose Chroma is rebuilt by a child process: recall answers meanwhile, and nothing is left behind."""

from __future__ import annotations

import json
import random
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

from chroma_mutations import copied_and_sealed
from forks import Child, finished, left_behind, processes_naming, say
from inside import state_of
from kill_checker import Acknowledged
from kill_worker import signature, work_until_killed

from cascade_memory import CascadeMemory


def _fill(folder: Path, cases: int, pipe: int) -> None:
    memory = CascadeMemory(folder, embedder="hashing")
    memory.add([(f"task {i} of kind {i % 97}", f"solution {i % 311}") for i in range(cases)], progress=False)
    for i in range(200):
        recall = memory.recall(f"task {i} of kind {i % 97}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 311}")
    memory.close()  # feeds Chroma
    say(pipe, "filled")


def _look(folder: Path, books: Acknowledged, pipe: int, *, stay: bool) -> None:
    """Time the first recall and look for what was acknowledged; stay to be killed, or leave properly."""
    began, worked = time.perf_counter(), time.thread_time()
    memory = CascadeMemory(folder, embedder="hashing")
    first = memory.recall("task 3 of kind 3")
    seconds, cpu = time.perf_counter() - began, time.thread_time() - worked
    state = memory.health().chroma
    wrong = [] if first.explain().candidates else [f"the first recall found nothing: {first.error}"]
    for case in books.cases:
        memory.cases.get(case)
    for episode_id, (value, _) in books.outcomes.items():
        episode = memory.episodes.get(episode_id)
        if episode is None or episode.reward != value:
            wrong.append(f"outcome of {episode_id} is lost")
    settled, learned = memory.stats().rewards, state_of(memory).policy.rewards
    if not min(settled, 2048) <= learned <= settled:
        wrong.append(f"{learned} outcomes learned of {settled}")
    say(pipe, json.dumps({"seconds": seconds, "cpu": cpu, "chroma": state, "wrong": wrong}))
    if stay:
        time.sleep(60)
    memory.close()


class _Rounds:
    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self._times: list[float] = []
        self._cpu: list[float] = []  # of the opening thread alone: what a machine with idle cores would need
        self._states: list[str] = []
        self._died_after: list[float] = []
        self._wrong: list[str] = []
        self._leftovers = self._saving = self._building = 0

    def _take(self, lines: list[str]) -> None:
        found = next((json.loads(line) for line in lines if line.startswith("{")), None)
        if found is None:
            self._wrong.append(f"no answer: {lines[-1:]}")
            return
        self._times.append(round(found["seconds"], 3))
        self._cpu.append(round(found["cpu"], 3))
        self._states.append(found["chroma"])
        self._wrong += found["wrong"] + [line for line in lines if line.startswith("!")]

    def _gone(self) -> None:
        began = time.monotonic()
        self._leftovers += left_behind(str(self._folder))
        self._died_after.append(round(time.monotonic() - began, 3))

    def kill_while_saving(self, number: int) -> Acknowledged:
        """Kill a worker the moment the HNSW files change."""
        books, before, child = Acknowledged(), None, Child(partial(work_until_killed, self._folder, number))

        def listen() -> None:
            nonlocal before
            for line in child.lines():
                verb, *words = line.split(" ")
                before = words[0] if verb == "writing" else None if verb == "written" else before
                books.take(line)

        saves, deadline = self._rng.randrange(4), time.monotonic() + 60
        while not child.ended() and time.monotonic() < deadline:
            listen()
            if before is not None and signature(self._folder) != before:
                saves -= 1
                if saves < 0:
                    break
                before = None
            time.sleep(0.0005)
        time.sleep(self._rng.choice([0.0, self._rng.random() * 0.05]))
        child.kill()
        listen()
        child.close()
        self._saving += before not in (None, signature(self._folder))
        self._wrong += books.errors
        self._gone()
        return books

    def kill_while_rebuilding(self, books: Acknowledged) -> None:
        """Open, which begins a rebuild in a child; kill the opener in the middle of it."""
        child, lines = Child(partial(_look, self._folder, books, stay=True)), []
        deadline = time.monotonic() + 60
        while not lines and not child.ended() and time.monotonic() < deadline:
            lines += child.lines()
            time.sleep(0.005)
        time.sleep(self._rng.random() * 4)
        self._building += bool(processes_naming(str(self._folder)))
        child.kill()
        lines += child.lines()
        child.close()
        self._take(lines)
        self._gone()

    def open_and_leave(self, books: Acknowledged) -> None:
        """Open once more and close properly: nothing of the rebuild stays."""
        self._take(finished(partial(_look, self._folder, books, stay=False)))
        self._gone()
        if list(self._folder.glob("*.building")):
            self._wrong.append("an unfinished Chroma was left")

    def summary(self) -> dict[str, Any]:
        return {
            "kills": len(self._times),
            "killed_while_saving": self._saving,
            "killed_while_rebuilding": self._building,
            "worst_first_recall_s": max(self._times, default=0.0),
            "median_first_recall_s": sorted(self._times)[len(self._times) // 2] if self._times else 0.0,
            "answered_while_rebuilding": self._states.count("rebuilding"),
            "first_recall_s": self._times,
            "first_recall_cpu_s": self._cpu,
            "slowest_death_of_a_builder_s": max(self._died_after, default=0.0),
            "wrong": self._wrong[:20],
            "leftovers": self._leftovers,
        }


def run(folder: Path, cases: int, kills: int, rng: random.Random) -> dict[str, Any]:
    """Fill a folder once; then, on copies of it, kill while saving and kill again while rebuilding."""
    template, here = folder / "template", folder / "memory"
    filled = finished(partial(_fill, template, cases), seconds=300)
    if filled[-1:] != ["filled"]:
        raise RuntimeError(f"could not fill {template}: {filled}")
    rounds = _Rounds(here, rng)
    for number in range(kills):
        copied_and_sealed(template, here)
        books = rounds.kill_while_saving(1_000_000 + number)
        rounds.kill_while_rebuilding(books)
        rounds.kill_while_rebuilding(books)
        rounds.open_and_leave(books)
    shutil.rmtree(folder, ignore_errors=True)
    return {"cases": cases, **rounds.summary()}
