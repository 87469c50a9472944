"""Run what is missing, in parallel processes, and keep each row at once: a killed benchmark goes on where it was."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path

from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.play import play
from cascade_memory.evaluation.bench.rows import Row, Rows, circumstances
from cascade_memory.memory.progress import progress_bar


def run(runs: Sequence[Run], data: Path, target: Path, *, jobs: int = 1, progress: bool | None = None) -> list[Row]:
    """Play the runs that have no row in ``target`` yet; return the rows of all of them."""
    wanted = list(runs)
    rows = Rows(target)
    todo = rows.missing(wanted)
    about = circumstances() if todo else {}
    if jobs <= 1 or len(todo) <= 1:
        for one in progress_bar(todo, "runs", show=progress):
            rows.append({**play(one, data), **about})
        return rows.of(wanted)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        futures = [pool.submit(play, one, data) for one in todo]
        for finished in progress_bar(as_completed(futures), "runs", show=progress, total=len(futures)):
            rows.append({**finished.result(), **about})
    return rows.of(wanted)


def _end_with_parent() -> None:
    """Let a worker end when its parent is killed: left to itself it would wait for work for ever."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()
