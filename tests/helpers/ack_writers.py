"""Writers that say of every write when it began and whether it was acknowledged: in threads, or in processes of their own."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy.random  # noqa: F401 - loaded lazily: a process that forks while a thread loads it leaves that lock to its child

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


def attempt(memory: CascadeMemory, name: str, i: int, tell: Callable[[str], object]) -> bool:
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

    def __init__(self, folder: Path, embedder: str = "hashing") -> None:
        self.said = Said()
        self.memory = CascadeMemory(folder, embedder=embedder)
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

    def wait_until_all_write(self) -> None:
        self.wait_for(acknowledged=3 * WRITERS)

    def stop(self) -> Said:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=60)
        return self.said

    def close(self) -> None:
        self.memory.close()


class ProcessWriters:
    """Four processes, each with the folder open for itself."""

    def __init__(self, folder: Path, embedder: str = "hashing") -> None:
        self.said = Said()
        self._flag = folder.with_name("stop")
        self._outputs = [folder.with_name(f"said{n}") for n in range(WRITERS)]
        command = [sys.executable, "-W", "ignore", __file__, str(folder), str(self._flag), embedder]
        self._processes = []
        for output in self._outputs:
            with output.open("wb") as file, output.with_suffix(".errors").open("wb") as errors:
                self._processes.append(subprocess.Popen([*command, output.name], stdout=file, stderr=errors))

    def _read(self) -> None:
        found = Said()
        for output in self._outputs:
            for line in output.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    found.take(line.strip())
        self.said = found

    def wait_for(self, acknowledged: int, refused: int = 0) -> None:
        deadline = time.monotonic() + 90
        while self._read() or len(self.said.acknowledged) < acknowledged or len(self.said.refused) < refused:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.02)

    def wait_until_all_write(self) -> None:
        deadline = time.monotonic() + 90
        while not all(output.read_text().count("yes ") >= 2 for output in self._outputs):
            self._check_alive()
            assert time.monotonic() < deadline, [output.read_text()[-300:] for output in self._outputs]
            time.sleep(0.02)

    def _check_alive(self) -> None:
        for process, output in zip(self._processes, self._outputs, strict=True):
            assert process.poll() is None, output.with_suffix(".errors").read_text()[-3_000:]

    def stop(self) -> Said:
        self._flag.touch()
        assert [process.wait(timeout=90) for process in self._processes] == [0] * WRITERS
        self._read()
        return self.said

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def _main(folder: str, flag: str, embedder: str, name: str) -> None:
    with CascadeMemory(folder, embedder=embedder) as memory:
        for i in itertools.count():
            if Path(flag).exists():
                break
            attempt(memory, name, i, lambda line: (sys.stdout.write(line + "\n"), sys.stdout.flush()))


if __name__ == "__main__":
    _main(*sys.argv[1:])
