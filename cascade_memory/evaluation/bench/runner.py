"""Plays the missing runs in parallel processes and writes each row at once, so that a killed benchmark can be continued."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path

from cascade_memory.assembly import OwnerLock
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.play import play
from cascade_memory.evaluation.bench.rows import Row, Rows, circumstances
from cascade_memory.evaluation.bench.stage import Folders, Staging
from cascade_memory.evaluation.bench.stages import prepare, stage_for
from cascade_memory.memory import progress_bar


def run(
    runs: Sequence[Run],
    data: Path,
    target: Path,
    *,
    staged: Staging = stage_for,
    how: Callable[[Run, Folders], Row] | None = None,
    jobs: int = 1,
    progress: bool | None = None,
    models: Mapping[str, str] | None = None,
) -> list[Row]:
    """Play the runs that have no row in ``target`` yet; return the rows of all runs.

    Data that the runs share (queries of an environment, cached outcomes) is stored in a folder beside ``target``. If a run
    fails (for example because a model's server is down), the runs in progress are finished and stored, and no other run is
    started. ``models`` are the folders of rerankers and embedders by their names in the runs, as ``Setup.folders`` has them.
    ``how`` is a function that plays a run, instead of ``play.play`` with a stage.
    """
    wanted = list(dict.fromkeys(runs))
    known = Rows(target)
    if not known.missing(wanted):
        return known.of(wanted)
    folders = Folders(data, work_of(target), models or {})
    with _alone(folders.work, target):
        # Read again: another benchmark may have written rows before the lock was taken.
        return _run(
            wanted, Rows(target), folders, how or partial(play, staged=staged, told=progress is not False), jobs, progress
        )


def _run(
    wanted: list[Run], rows: Rows, folders: Folders, played: Callable[[Run, Folders], Row], jobs: int, progress: bool | None
) -> list[Row]:
    todo = rows.missing(wanted)
    about = circumstances()
    shared = {(one.task, one.solver, one.limit): one for one in todo if one.solver != "simulated"}
    for one in shared.values():
        prepare(one, folders)
    if jobs <= 1 or len(todo) <= 1:
        for one in progress_bar(todo, "runs", show=progress):
            rows.append({**played(one, folders), **about})
        return rows.of(wanted)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin) as pool:
        waiting = {pool.submit(played, one, folders) for one in todo}
        try:
            for finished in progress_bar(as_completed(set(waiting)), "runs", show=progress, total=len(todo)):
                waiting.discard(finished)
                rows.append({**finished.result(), **about})
        except BaseException:
            under_way = [one for one in waiting if not one.cancel()]
            for one in under_way:
                if one.exception() is None:
                    rows.append({**one.result(), **about})
            raise
    return rows.of(wanted)


@contextmanager
def _alone(work: Path, target: Path) -> Generator[None]:
    """Inside the block, keep other benchmarks from writing to ``target``; raise an error if one is writing to it already."""
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot use the folder {work} beside {target}: {error}. Name another file") from error
    lock = OwnerLock(work / "lock")
    if not lock.try_acquire():
        raise InvalidInput(f"another benchmark is writing to {target}: wait until it has finished, or name another file")
    try:
        yield
    finally:
        lock.release()


def work_of(target: Path) -> Path:
    """Return the path of the folder beside a file of rows, which holds the data that its runs share."""
    return target.parent / f"{target.stem}.work"


def _begin() -> None:
    """Prepare a worker: it uses one thread for arithmetic, and ends if its parent is killed, instead of waiting forever."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers that each use all cores slow each other down
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()
