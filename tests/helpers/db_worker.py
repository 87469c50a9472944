"""What is killed and paused: one process of several that work in the same database, and keep books of what was acknowledged."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from inside import engine_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import StoreError, UnknownCase, UnknownEpisode
from cascade_memory.ledger.postgres import leases, pool
from cascade_memory.ledger.postgres.batch import Batch

T = TypeVar("T")
MAX_CASES = 40  # few, so that there is always something to tidy
_KINDS = 40
_STOCK = 16  # the newest own cases, of which some are forgotten


class Journal:
    """A file of its own for each worker; a line is written in one piece, after the call that it tells of has returned."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, what: str, *words: object) -> None:
        os.write(self._file, (json.dumps([what, time.time(), *words]) + "\n").encode())


def read_journal(path: Path) -> list[list[Any]]:
    """Return the lines of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def say_which_epoch(journal: Journal) -> None:
    """Let the database see who writes, and which epoch of a lease he believes in. For this process only."""
    pool.HOW = {**pool.HOW, "application_name": f"worker {os.getpid()}"}
    require, lost = Batch.require, leases.Lease.lost

    def requiring(self: Batch, condition: str, parameters: Any) -> None:
        if "cascade_memory.lease" in condition:
            self.add(f"SET LOCAL torture.epoch = '{int(parameters[3])}'")
        require(self, condition, parameters)

    def losing(self: leases.Lease) -> Any:
        journal.note("fenced out", self._job, self._namespace, self._epoch)
        lost(self)

    Batch.require, leases.Lease.lost = requiring, losing  # type: ignore[method-assign]


def solution_of(kind: int) -> str:
    """Return words that no other solution has: so none is taken for an adapted form of another one."""
    return " ".join(hashlib.sha256(f"{kind} {word}".encode()).hexdigest()[:8] for word in range(4))


class Worker:
    """Recalls, rewards, adds and forgets. A call that failed is made again, until it is acknowledged or cannot be any more."""

    def __init__(self, memory: CascadeMemory, journal: Journal, name: str, namespaces: list[str]) -> None:
        self._memory, self._journal, self._name, self._namespaces = memory, journal, name, namespaces
        self._rng = random.Random(name)
        self._stock: list[tuple[str, str, str | None]] = []  # (namespace, case, its episode)

    def resume(self, lines: list[list[Any]]) -> None:
        """Finish what an earlier process of this place had begun when it was killed: it may have been done, or not."""
        rewarding = {line[3]: line for line in lines if line[0] == "rewarding"}
        forgetting = {line[3]: line for line in lines if line[0] == "forgetting"}
        for what, _, _, key, *_ in lines:
            if what in ("rewarded", "vanished"):
                rewarding.pop(key, None)
            elif what in ("forgot", "gone"):
                forgetting.pop(key, None)
        for _, _, namespace, episode, value, solution, _ in rewarding.values():
            self._reward(namespace, episode, value, solution)
        for _, _, namespace, case, episode in forgetting.values():
            self._forget_one(namespace, case, episode)

    def step(self, number: int) -> None:
        """Do one thing."""
        namespace = self._rng.choice(self._namespaces)
        self._rng.choice((self._settle, self._add, self._forget))(namespace, f"{self._name}.{number}")

    def _insist(self, call: Callable[[], T]) -> T:
        """Call until the database answers; each refusal has to say why."""
        while True:
            try:
                return call()
            except StoreError as error:
                self._journal.note("refused", type(error).__name__, str(error))
                time.sleep(0.1)

    def _settle(self, namespace: str, name: str) -> None:
        began = time.monotonic()
        recall = self._memory.acting(namespace=namespace).recall(f"task {name} of kind {self._rng.randrange(7)}")
        seconds = time.monotonic() - began
        if recall.error:
            self._journal.note("failed open", namespace, seconds, recall.error)
            return
        # While the server is busy, a recall waits in this process to be written down, and goes with it if it is killed.
        waits = engine_of(self._memory).recording.holds(recall.episode_id)
        self._journal.note("recalled late" if waits else "recalled", namespace, recall.episode_id, seconds)
        value, solution = float(self._rng.random() < 0.8), solution_of(self._rng.randrange(_KINDS))
        self._journal.note("rewarding", namespace, recall.episode_id, value, solution, name)
        self._reward(namespace, recall.episode_id, value, solution)

    def _reward(self, namespace: str, episode: str, value: float, solution: str) -> None:
        try:
            case = self._insist(lambda: self._memory.acting(namespace=namespace).reward(episode, value, solution=solution))
        except UnknownEpisode as error:  # its recall could not be written down
            self._journal.note("vanished", namespace, episode, str(error))
            return
        self._journal.note("rewarded", namespace, episode, value, case)
        self._keep(namespace, case, episode)

    def _add(self, namespace: str, name: str) -> None:
        query, solution = f"known task {name}", solution_of(self._rng.randrange(_KINDS))
        case = self._insist(lambda: self._memory.acting(namespace=namespace).add(query, solution))
        self._journal.note("added", namespace, case, query, solution)
        self._keep(namespace, case, None)

    def _keep(self, namespace: str, case: str | None, episode: str | None) -> None:
        # What was learned is learned again whenever an episode is forgotten: so that is done less often.
        if case is not None and (episode is None or self._rng.random() < 0.1):
            self._stock = [*self._stock[1 - _STOCK :], (namespace, case, episode)]

    def _forget(self, namespace: str, name: str) -> None:
        del namespace, name
        if self._stock:
            self._forget_one(*self._stock.pop(self._rng.randrange(-min(8, len(self._stock)), 0)))

    def _forget_one(self, namespace: str, case: str, episode: str | None) -> None:
        self._journal.note("forgetting", namespace, case, episode)
        try:
            self._insist(lambda: self._memory.acting(namespace=namespace).forget(case))
        except UnknownCase:  # evicted, or forgotten by a call that did not return
            self._journal.note("gone", namespace, case, episode)
        else:
            self._journal.note("forgot", namespace, case, episode)


def opened(url: str, **options: Any) -> CascadeMemory:
    """Open a memory, as soon as the server is there."""
    while True:
        try:
            return CascadeMemory(url, embedder="hashing", **options)
        except StoreError:
            time.sleep(0.1)


def work(url: str, chroma: str | None, namespaces: list[str], path: Path, stop: Path, pipe: int) -> None:
    """Work until the kill, or until somebody says that it is enough."""
    del pipe
    journal, before = Journal(path), read_journal(path)
    say_which_epoch(journal)
    with opened(url, chroma=chroma, retention=Retention(max_cases=MAX_CASES)) as memory:
        worker = Worker(memory, journal, f"{path.stem}-{os.getpid()}", namespaces)
        worker.resume(before)
        number = 0
        while not stop.exists():
            worker.step(number)
            number += 1
        failures = {step: count for step, count in memory.health().failures.items() if count}
    journal.note("closed", failures)
