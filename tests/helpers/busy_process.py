"""A process that opens memories and does what it is told there, on eight threads at a time."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from busy_actor import NAMESPACES, Actor, Done, Op, query, shared_episodes
from inside import engine_of, state_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import StoreError
from cascade_memory.ledger.sqlite import SQLiteLedger

SEEDS_PER_NAMESPACE = 3
_SPAWN = multiprocessing.get_context("spawn")


class Known(NamedTuple):
    """What a process makes of a namespace: to be the same in all processes, and in one that opens the folder afresh."""

    indexed: int
    rewards: int
    words: bytes
    letters: bytes
    texts: int
    single: dict[int, int]
    several: dict[int, tuple[int, bytes]]


def known(memory: CascadeMemory, namespace: str) -> Known:
    state: Any = state_of(memory, namespace)
    encoder = state.encoder
    clusters = encoder.clusters
    return Known(
        state.index.count,
        state.policy.rewards,
        encoder.words.counts.tobytes(),
        encoder.letters.counts.tobytes(),
        encoder.words.texts,
        dict(clusters.single),
        {group: (n, np.round(total, 3).tobytes()) for group, (total, n) in clusters.several.items()},
    )


class _Worker:
    def __init__(self, number: int, barrier: Any) -> None:
        self._number, self._barrier = number, barrier
        self._memory: CascadeMemory | None = None
        self._stop = threading.Event()
        self._written: list[str] = []
        self._writer: threading.Thread | None = None

    @property
    def memory(self) -> CascadeMemory:
        assert self._memory is not None
        return self._memory

    def open(self, path: Path) -> str:
        if self._barrier is not None:
            self._barrier.wait(60)  # both at once: somebody has to make the folder
        self._memory = CascadeMemory(path, embedder="hashing")
        return self.state()

    def state(self) -> str:
        return self.memory.health().chroma

    def seed(self) -> dict[str, list[str]]:
        for episode, namespace in shared_episodes():
            self.memory.acting(namespace=namespace).recall(query(namespace, 0), episode_id=episode)
        return {
            name: self.memory.acting(namespace=name).add(
                [(query(name, i), f"{name} seed {i}") for i in range(SEEDS_PER_NAMESPACE)]
            )
            for name in NAMESPACES
        }

    def run(self, plan: list[list[Op]], seeds: dict[str, list[str]]) -> list[Done]:
        actors = [Actor(self.memory, f"p{self._number}t{i}", seeds) for i in range(len(plan))]
        start = threading.Barrier(len(plan) + 1)
        threads = [threading.Thread(target=actor.run, args=(ops, start)) for actor, ops in zip(actors, plan, strict=True)]
        for thread in threads:
            thread.start()
        self._barrier.wait(60)
        start.wait(60)
        for thread in threads:
            thread.join(60)
        if any(thread.is_alive() for thread in threads):
            raise TimeoutError("a thread hangs")
        return [done for actor in actors for done in actor.log]

    def start_writing(self) -> None:
        self._writer = threading.Thread(target=self._write)
        self._writer.start()

    def _write(self) -> None:
        while not self._stop.wait(0.005):
            n = len(self._written)
            recall = self.memory.recall(f"process {self._number} heats cup {n}")
            case = self.memory.reward(recall.episode_id, 1.0, solution=f"process {self._number} solves {n}")
            assert case is not None
            self._written.append(case)

    def written(self) -> list[str]:
        return self._written[:]

    def stop_writing(self) -> list[str]:
        assert self._writer is not None
        self._stop.set()
        self._writer.join(60)
        return self._written

    def sync(self) -> None:
        self.memory.sync()

    def solve(self, asked: str, solved: str) -> tuple[list[str], str | None]:
        recall = self.memory.recall(asked)
        return [str(case.solution) for case in recall.cases], self.memory.reward(recall.episode_id, 1.0, solution=solved)

    def look(self) -> dict[str, Known]:
        indexed: dict[str, int] = {}
        time.sleep(engine_of(self.memory).parts.rereads)  # none for a folder
        for name in NAMESPACES:
            self.memory.acting(namespace=name).recall(query(name, 1))  # is enough to see what the other process stored
            indexed[name] = state_of(self.memory, name).index.count
        with contextlib.suppress(StoreError):  # a follower learns, and leaves Chroma to the owner
            self.memory.sync()
        return {name: known(self.memory, name)._replace(indexed=indexed[name]) for name in NAMESPACES}

    def wrong(self) -> list[str]:
        health = self.memory.health()
        return [str(check) for check in self.memory.data.examine() if not check.ok] + ([] if health.ok else [str(health)])

    def close(self) -> dict[str, int]:
        self.memory.close()
        return dict(engine_of(self.memory).failures)


def serve(connection: Connection, number: int, barrier: Any) -> None:
    """Answer calls until the other side is gone."""
    worker = _Worker(number, barrier)
    sys.setswitchinterval(0.0005)  # more interleavings in the same time
    with contextlib.suppress(EOFError):
        while True:
            verb, arguments = connection.recv()
            try:
                connection.send((getattr(worker, verb)(*arguments), None))
            except Exception:
                connection.send((None, traceback.format_exc()))


class BusyProcess:
    """The other end: ``ask`` and ``answer``, so that several can be busy at once."""

    def __init__(self, number: int, barrier: Any = None) -> None:
        self._barrier = barrier  # its semaphores live as long as somebody here holds it
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs, number, barrier), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, verb: str, *arguments: Any) -> None:
        self._connection.send((verb, arguments))

    def answer(self) -> Any:
        assert self._connection.poll(120), "the process does not answer"
        result, error = self._connection.recv()
        assert error is None, error
        return result

    def call(self, verb: str, *arguments: Any) -> Any:
        self.ask(verb, *arguments)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.join(30)
        self._connection.close()

    def stop(self) -> int | None:
        self._connection.close()
        self._process.join(30)
        return self._process.exitcode


def make_ledgers(folder: Path, rounds: int, barrier: Any, failed: Any) -> None:
    """Open one new ledger after the other, each at the same moment as other processes do."""
    for i in range(rounds):
        barrier.wait(60)
        try:
            SQLiteLedger(folder / f"{i}.sqlite3").close()
        except Exception as error:
            failed.put(repr(error))


def make_at_once(folder: Path, *, processes: int, rounds: int) -> list[str]:
    """Let several processes make the same ledgers; return what went wrong."""
    barrier, failed = _SPAWN.Barrier(processes), _SPAWN.SimpleQueue()
    makers = [_SPAWN.Process(target=make_ledgers, args=(folder, rounds, barrier, failed)) for _ in range(processes)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(120)
    wrong = [f"exit status {maker.exitcode}" for maker in makers if maker.exitcode != 0]
    while not failed.empty():
        wrong.append(failed.get())
    failed.close()
    return wrong


def pair() -> tuple[BusyProcess, BusyProcess]:
    """Return two processes that start each round together."""
    barrier = _SPAWN.Barrier(2)
    return BusyProcess(0, barrier), BusyProcess(1, barrier)
