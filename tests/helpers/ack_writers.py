"""Writers that say of every write when it began and whether it was acknowledged: in threads, or in processes of their own."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from forks import Child, say

from cascade_memory import CascadeMemory
from cascade_memory.errors import CascadeError, StoreError

WRITERS = 4


@dataclass
class Said:
    """What the writers said: (began, id) of what was acknowledged, (began, sentence) of what was refused."""

    acknowledged: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)

    def acknowledged_after(self, moment: float) -> list[str]:
        """Return what was begun after a moment, and acknowledged."""
        return [case for began, case in self.acknowledged if began > moment]

    def ids(self) -> set[str]:
        return {case for _, case in self.acknowledged}

    def take(self, line: str) -> None:
        kind, began, rest = line.split(" ", 2)
        {"yes": self.acknowledged, "no": self.refused}[kind].append((float(began), rest))


def write(memory: CascadeMemory, name: str, i: int) -> str:
    """Store one case, by hand or by a reward."""
    if i % 2:
        return memory.add(f"{name} task {i}", f"solution {i}")
    recall = memory.recall(f"{name} task {i}")
    if recall.error:
        raise StoreError(recall.error)  # it said so; a reward for it is nobody's any more
    return str(memory.reward(recall.episode_id, 1.0, solution=f"solution {i}"))


def attempt(memory: CascadeMemory, name: str, i: int, tell: Callable[[str], None]) -> bool:
    """Write once and tell; return whether it was acknowledged."""
    began = time.monotonic()
    try:
        case = write(memory, name, i)
    except CascadeError as error:
        tell(f"no {began} {type(error).__name__}: {error}".replace("\n", " "))
        return False
    tell(f"yes {began} {case}")
    return True


class ThreadWriters:
    """Four threads on one memory."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.said = Said()
        self.memory = CascadeMemory(folder, **{"embedder": "hashing", **options})  # type: ignore[arg-type]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(f"thread{n}",), daemon=True) for n in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, name: str) -> None:
        for i in itertools.count():
            if self._stop.is_set():
                return
            attempt(self.memory, name, i, self.said.take)

    def wait_for(self, acknowledged: int, refused: int = 0) -> None:
        deadline = time.monotonic() + 60
        while len(self.said.acknowledged) < acknowledged or len(self.said.refused) < refused:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.005)

    def stop(self) -> Said:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=60)
        return self.said

    def close(self) -> None:
        self.memory.close()


class ProcessWriters:
    """Four processes, each with the folder open for itself."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.said = Said()
        self._flag = folder.with_name("stop")
        self._flag.unlink(missing_ok=True)
        flag = self._flag

        def work(pipe: int) -> None:
            import warnings

            warnings.simplefilter("ignore")
            memory = CascadeMemory(folder, **{"embedder": "hashing", **options})  # type: ignore[arg-type]
            for i in itertools.count():
                if flag.exists():
                    break
                attempt(memory, f"process{pipe}-{id(memory)}-{time.time_ns()}", i, lambda line: say(pipe, line))
            memory.close()

        self._children = [Child(work) for _ in range(WRITERS)]

    def _read(self) -> None:
        for child in self._children:
            for line in child.lines():
                assert not line.startswith("!"), line
                self.said.take(line)

    def wait_for(self, acknowledged: int, refused: int = 0) -> None:
        deadline = time.monotonic() + 60
        while self._read() or len(self.said.acknowledged) < acknowledged or len(self.said.refused) < refused:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.005)

    def stop(self) -> Said:
        self._flag.touch()
        deadline = time.monotonic() + 60
        while not all([child.ended() for child in self._children]):
            self._read()
            assert time.monotonic() < deadline, "a writer does not end"
            time.sleep(0.005)
        self._read()
        for child in self._children:
            assert child.status == 0
            child.close()
        return self.said

    def close(self) -> None:
        for child in self._children:
            child.kill()
