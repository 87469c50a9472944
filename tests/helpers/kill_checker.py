"""What was acknowledged before a kill, and whether it is there after it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forks import FAILED, say
from inside import engine_of
from kill_worker import hasten_chroma

from cascade_memory import CascadeMemory
from cascade_memory.errors import UnknownCase

BATCH = 3  # cases of one ``add``


@dataclass
class Acknowledged:
    """The books of one folder, kept by somebody who is not killed."""

    recalls: set[str] = field(default_factory=set)
    outcomes: dict[str, tuple[float, str]] = field(default_factory=dict)  # episode -> (value, case or "-")
    cases: set[str] = field(default_factory=set)
    forgotten: dict[str, str] = field(default_factory=dict)  # case -> its episode or "-"
    unsure: dict[str, str] = field(default_factory=dict)  # being forgotten when the kill came
    batches: dict[str, bool] = field(default_factory=dict)  # added in one call -> acknowledged
    errors: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Enter one line of a worker's report."""
        verb, *words = line.split(" ")
        if verb == "recalled":
            self.recalls.add(words[0])
        elif verb == "settled":
            self.outcomes[words[0]] = (float(words[1]), words[2])
            self.cases |= {words[2]} - {"-"}
        elif verb == "adding":
            self.batches[words[0]] = False
        elif verb == "added":
            self.batches[words[0]] = True
            self.cases |= set(words[1:])
        elif verb in ("forgetting", "forgot"):
            self._part_with(verb, *words)
        elif verb == FAILED:
            self.errors.append(" ".join(words))

    def _part_with(self, verb: str, case: str, episode: str) -> None:
        self.cases.discard(case)
        self.recalls.discard(episode)
        self.outcomes.pop(episode, None)
        if verb == "forgot":
            self.unsure.pop(case, None)
            self.forgotten[case] = episode
        else:
            self.unsure[case] = episode

    @property
    def facts(self) -> int:
        """How many things must be as they were acknowledged."""
        return len(self.recalls) + len(self.outcomes) + len(self.cases) + len(self.forgotten) + len(self.batches)


def _has(memory: CascadeMemory, case: str) -> bool:
    try:
        return memory.cases.get(case).id == case
    except UnknownCase:
        return False


def _lost(memory: CascadeMemory, books: Acknowledged) -> list[str]:
    lost = [f"case {case} is lost" for case in books.cases if not _has(memory, case)]
    lost += [f"recall {episode} is lost" for episode in books.recalls if memory.episodes.get(episode) is None]
    for episode_id, (value, case) in books.outcomes.items():
        episode = memory.episodes.get(episode_id)
        if episode is None or (episode.status, episode.reward) != ("settled", value):
            lost.append(f"outcome of {episode_id} is lost: {episode}")
        if case != "-" and memory.cases.get(case).episode_id != episode_id:
            lost.append(f"case {case} is not of {episode_id}")
    return lost


def _undead(memory: CascadeMemory, books: Acknowledged) -> list[str]:
    wrong = []
    for case, episode in books.forgotten.items():
        if _has(memory, case) or (episode != "-" and memory.episodes.get(episode) is not None):
            wrong.append(f"case {case} was forgotten and is back")
    for case, episode in books.unsure.items():
        if episode != "-" and _has(memory, case) != (memory.episodes.get(episode) is not None):
            wrong.append(f"case {case} was half forgotten")
    return wrong


def _torn(memory: CascadeMemory, books: Acknowledged) -> list[str]:
    """Unacknowledged calls may have had all of their effect or none."""
    engine = engine_of(memory)
    torn = []
    for name, acknowledged in books.batches.items():
        there = len(engine.parts.ledger.filtered(engine.namespace_id("default"), {"batch": name}))
        # Only the first case of a batch is ever forgotten, and only when the batch was acknowledged.
        if there not in ((BATCH, BATCH - 1) if acknowledged else (0, BATCH)):
            torn.append(f"batch {name} has {there} cases")
    return torn


def _unlearned(memory: CascadeMemory) -> list[str]:
    engine = engine_of(memory)
    settled, learned = memory.stats().rewards, engine.namespace_state("default").policy.rewards
    window = 2048  # learned afresh: the last so many
    if not min(settled, window) <= learned <= settled:
        return [f"{learned} outcomes learned of {settled}"]
    return []


def compare(memory: CascadeMemory, books: Acknowledged) -> list[str]:
    """Return what an open memory does not have as the books say."""
    wrong = _unlearned(memory) + _lost(memory, books) + _undead(memory, books) + _torn(memory, books)
    verdict = engine_of(memory).parts.ledger.maintenance.integrity()
    return wrong + ([f"integrity: {verdict}"] if verdict != "ok" else [])


def verify(folder: Path, books: Acknowledged, pipe: int, *, thorough: bool = False) -> None:
    """Open the folder, time the first recall, compare everything with the books, and report."""
    hasten_chroma()
    began = time.perf_counter()
    memory = CascadeMemory(folder, embedder="hashing")
    first = memory.recall("task 3 of kind 3")
    seconds = time.perf_counter() - began
    state = memory.health().chroma
    wrong = [f"the first recall failed: {first.error}"] if first.error else []
    wrong += ["the lock is still held"] if state == "follower" else []
    wrong += compare(memory, books)
    if thorough:
        memory.sync()
        wrong += [
            f"{check.name}: {check.detail}" for check in memory.data.examine() if not check.ok and check.name != "free disk"
        ]
    report: dict[str, Any] = {"seconds": seconds, "chroma": state, "wrong": wrong[:20], "cases": memory.stats().cases}
    engine_of(memory).close(feed=False)  # feeding the rest is the next worker's job
    say(pipe, json.dumps(report))
