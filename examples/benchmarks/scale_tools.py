"""The tools of the scale benchmark: clocks, memory, disk, references and growth."""

from __future__ import annotations

import inspect
import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory import CascadeMemory

K = 32
Interval = tuple[float, float, float]  # the estimate, and the lower and upper end of its 95 % interval


def accepts(name: str) -> bool:
    """Say whether this version of the library has a constructor argument."""
    return name in inspect.signature(CascadeMemory.__init__).parameters


class Clock:
    """Collects the milliseconds of each ``with`` block: wall-clock time, and CPU time of the thread and of the process."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.thread: list[float] = []
        self.process: list[float] = []

    def __enter__(self) -> Clock:
        self._began = (time.process_time(), time.thread_time(), time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter()
        process, thread, began = self._began
        self.wall.append(1000 * (wall - began))
        self.thread.append(1000 * (time.thread_time() - thread))
        self.process.append(1000 * (time.process_time() - process))

    def row(self, name: str) -> dict[str, float]:
        """Return the median and the 95 % quantile, the median CPU time of the thread, and the mean CPU time of the process."""
        return {
            name: float(np.median(self.wall)),
            f"{name}_p95": float(np.quantile(self.wall, 0.95)),
            f"{name}_cpu": float(np.median(self.thread)),
            f"{name}_process_cpu": float(np.mean(self.process)),
        }


def memory_mib() -> dict[str, float]:
    """Return the memory of this process: now, now without mapped files, and at its peak."""
    status = Path("/proc/self/status")
    if not status.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return {"rss": peak, "rss_peak": peak}
    # Not ru_maxrss: on Linux it includes the peak of the process that started this one.
    fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    return {
        "rss": int(fields["VmRSS"].split()[0]) / 1024,
        "rss_own": int(fields["RssAnon"].split()[0]) / 1024,
        "rss_peak": int(fields["VmHWM"].split()[0]) / 1024,
    }


def disk_mib(folder: Path) -> dict[str, float]:
    """Return the size on disk of the parts of a memory's folder."""

    def size(paths: Sequence[Path]) -> float:
        return sum(path.stat().st_size for path in paths if path.is_file()) / 2**20

    return {
        "disk_ledger": size(list(folder.glob("ledger.sqlite3*"))),
        "disk_chroma": size(list((folder / "chroma").rglob("*"))),
        "disk_snapshots": size(list((folder / "snapshots").rglob("*"))),
        "disk": size(list(folder.rglob("*"))),
    }


class BareCommit:
    """Commits one small row per call, with SQLite alone, so that the row survives a power cut."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / f"bare-{os.getpid()}.sqlite3", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE t (x)")

    def __call__(self) -> None:
        """Commit a row."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO t VALUES (?)", ("row" * 150,))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def exact(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the rows of the 32 nearest vectors, found in plain numpy."""
    cosine = vectors @ query
    best = np.argpartition(-cosine, K)[:K]
    return best[np.argsort(-cosine[best])]


def numpy_scan_ms(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    """Return the median duration of an exact scan."""
    clock = Clock()
    for query in queries:
        with clock:
            exact(vectors, query)
    return float(np.median(clock.wall))


def slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the slope of the least-squares line."""
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def bootstrapped(estimate: Callable[[np.random.Generator | None], float], times: int = 1_000) -> Interval:
    """Return an estimate and its 95 % interval. ``estimate(rng)`` uses a resample, ``estimate(None)`` all data."""
    rng = np.random.default_rng(0)
    values = [estimate(rng) for _ in range(times)]
    return estimate(None), float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))


def growth(samples: dict[int, Sequence[float]]) -> Interval:
    """Return the exponent b of cost ~ n^b from measurements at each size: the slope through the logs of the medians."""
    sizes = np.log(np.array(list(samples), np.float64))

    def estimate(rng: np.random.Generator | None) -> float:
        medians = [np.median(some if rng is None else rng.choice(some, len(some))) for some in samples.values()]
        return slope(sizes, np.log(medians))

    return bootstrapped(estimate)


def drift(at: Sequence[float], cost: Sequence[float]) -> Interval:
    """Return the exponent of cost against the number of the episode, from the median of each block."""
    x, y = np.log(np.asarray(at, np.float64)), np.log(np.asarray(cost, np.float64))

    def estimate(rng: np.random.Generator | None) -> float:
        rows = np.arange(len(x)) if rng is None else rng.integers(len(x), size=len(x))
        return slope(x[rows], y[rows]) if len(set(rows.tolist())) > 1 else 0.0

    return bootstrapped(estimate)


def wait_for_chroma(memory: CascadeMemory, timeout: float = 120.0) -> bool:
    """Wait until recall uses Chroma; return False if it does not within the time, or never will."""
    feeder: Any = memory._engine.feeder
    until = time.monotonic() + timeout
    while feeder is not None and not feeder.covered and time.monotonic() < until:
        time.sleep(0.01)
    return bool(feeder is not None and feeder.covered)
