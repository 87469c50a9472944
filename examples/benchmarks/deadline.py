"""Measures how long a recall takes while some other part hangs, with a deadline of 0.5 s.

``python examples/benchmarks/deadline.py`` prints one row for each kind of fault: the times of 30 recalls, and whether they
returned their cases. A full disk and a read-only folder need ``unshare`` (Linux), and are left out elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.encoders.hashing import HashingEmbedder

DEADLINE, RECALLS, CASES = 0.5, 30, 1_000
_PRIVATE = "DEADLINE_PRIVATE_MOUNTS"
_WRITER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


class Embedder(HashingEmbedder):
    """A user's own embedder: the memory calls it on one of its own threads."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.go_on.set()

    def embed(self, texts: Any) -> Any:
        self.go_on.wait(600)
        return super().embed(texts)


def opened(folder: Path, matcher: Any = "exact", **options: Any) -> CascadeMemory:
    options = {"embedder": Embedder(), "deadline": DEADLINE, "ranking": Ranking(abstain=False, matcher=matcher), **options}
    memory = CascadeMemory(folder, **options)
    if not memory.stats().cases:
        memory.add([(f"task {i} of kind {i % 9}", f"solution {i % 9}") for i in range(CASES)], progress=False)
    memory.recall("task 1 of kind 1")
    return memory


def row(kind: str, recall: Callable[[str], Any]) -> None:
    waited, shown, unrecorded = [], 0, 0
    for i in range(RECALLS):
        began = time.perf_counter()
        found = recall(f"task {i} of kind {i % 9}")
        waited.append(1000 * (time.perf_counter() - began))
        shown += len(found.cases)
        unrecorded += found.error is not None and bool(found.cases)
    waited.sort()
    p50, p99 = waited[len(waited) // 2], waited[int(0.99 * len(waited))]
    print(f"| {kind} | {p50:,.0f} ms | {p99:,.0f} ms | {shown} of {RECALLS} | {unrecorded} |", flush=True)


@contextlib.contextmanager
def stopped_writer(folder: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _WRITER, str(folder / "ledger.sqlite3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        os.kill(process.pid, signal.SIGKILL)


def slow_import(memory: CascadeMemory, place: Path) -> None:
    memory.data.export(place / "export", progress=False)
    lines, stop = (place / "export").read_text(encoding="utf-8").splitlines(), threading.Event()

    def slowly() -> Iterator[str]:
        for line in lines:
            if stop.wait(0.01):
                return
            yield line

    thread = threading.Thread(target=lambda: memory.data.import_(slowly(), progress=False))
    thread.start()
    row("an import from a slow pipe", memory.recall)
    stop.set()
    thread.join()


async def hanging_rewards(folder: Path, kind: str, option: str) -> None:
    go_on = threading.Event()

    def hangs(*_: object) -> float:
        go_on.wait(600)
        return 1.0

    memory = opened(folder, **{option: hangs})
    ids = [memory.recall(f"task {i}").episode_id for i in range(40)]
    if option == "matcher":
        calls = [asyncio.ensure_future(memory.areward(one, 1.0, solution="s")) for one in ids]
    else:
        calls = [asyncio.ensure_future(memory.aend(one, solution="s")) for one in ids]
    await asyncio.sleep(0.5)
    loop = asyncio.get_running_loop()

    def recall(query: str) -> Any:
        return asyncio.run_coroutine_threadsafe(memory.arecall(query), loop).result()

    await loop.run_in_executor(None, row, kind, recall)
    go_on.set()
    await asyncio.gather(*calls)
    memory.close()


def purging(memory: CascadeMemory) -> None:
    memory.add([(f"long task {i}", os.urandom(10_000).hex()) for i in range(5_000)], progress=False)
    case = memory.cases.search("long task 1").cases[0].id
    thread = threading.Thread(target=lambda: memory.forget(case, purge=True))
    thread.start()
    row("a purge of 100 MB", memory.recall)
    thread.join()


def on_a_small_disk(place: Path) -> None:
    """Measure a full disk and a read-only folder. It mounts a disk, so it must run in a mount namespace of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], check=True)
    opened(place / "m").close()
    ballast = place / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, os.statvfs(place).f_bavail * 4096)
    memory = opened(place / "m")
    row("a full disk", memory.recall)
    memory.close()
    ballast.unlink()
    time.sleep(1)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    memory = opened(place / "m")
    row("a read-only folder", memory.recall)
    memory.close()


def main() -> None:
    warnings.simplefilter("ignore", RuntimeWarning)
    import logging

    logging.disable(logging.CRITICAL)
    if _PRIVATE in os.environ:
        on_a_small_disk(Path(os.environ[_PRIVATE]))
        return
    print("| what hangs | p50 | p99 | with cases | not written down |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="deadline-") as name:
        place = Path(name)
        memory = opened(place / "m")
        row("nothing", memory.recall)
        with stopped_writer(place / "m"):
            row("another process, stopped while it writes", memory.recall)
        slow_import(memory, place)
        purging(memory)
        memory.close()
        embedder = Embedder()
        memory = opened(place / "m", embedder=embedder)
        embedder.go_on.clear()
        row("the embedder", memory.recall)
        embedder.go_on.set()
        memory.close()
        asyncio.run(hanging_rewards(place / "m", "40 calls of a matcher", "matcher"))
        asyncio.run(hanging_rewards(place / "n", "40 calls of a reward function", "reward_fn"))
        if sys.platform == "linux" and shutil.which("unshare"):
            (place / "disk").mkdir()
            environment = {**os.environ, _PRIVATE: str(place / "disk")}
            subprocess.run(["unshare", "-rm", sys.executable, __file__], env=environment, check=False)


if __name__ == "__main__":
    main()
