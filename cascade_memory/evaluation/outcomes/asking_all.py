"""Fills a table of outcomes: plays many runs at once, so that a server or a model in this process answers in batches."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.measure import Staged
from cascade_memory.evaluation.bench.plan import Run, Suite
from cascade_memory.evaluation.bench.play import play
from cascade_memory.evaluation.bench.setup import Setup, under_each
from cascade_memory.evaluation.bench.stage import Folders, Stage
from cascade_memory.evaluation.bench.stages import prepare
from cascade_memory.evaluation.bench.watching import EVERY
from cascade_memory.evaluation.model.model_stage import Model
from cascade_memory.evaluation.outcomes.outcomes import Outcomes


def ask_all(
    suite: Suite,
    *,
    data: Path,
    solver: Model,
    together: int = 32,
    setup: Setup | Sequence[Setup] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Play the runs of a suite with a model whose answers are kept in a table: ``Model(chat=Outcomes(path, chat))``.

    The results of the runs are not kept: to play them again from the table takes seconds. If the call is stopped, the answers
    so far stay in the table, and the next call goes on from there. ``tell`` is called with the progress at least once a minute.
    """
    outcomes = solver.chat
    if not isinstance(outcomes, Outcomes):
        raise InvalidInput("the answers need a table: Model(chat=Outcomes(path, chat))")
    runs, models = under_each(setup, (replace(one, solver=solver.name) for one in suite.runs()))
    staged, one_at_a_time = Staged(solver, None, solver.declared), threading.Lock()

    def in_turn(run: Run, folders: Folders) -> Stage:
        with one_at_a_time:  # runs that begin together would all embed the same stream
            return staged(run, folders)

    with tempfile.TemporaryDirectory(prefix="cascade-memory-outcomes-") as work:
        folders = Folders(data, Path(work), models)
        for one in {run.task: run for run in runs}.values():
            prepare(one, folders)
        pool = ThreadPoolExecutor(min(together, len(runs)), thread_name_prefix="run")
        try:
            waiting = {pool.submit(play, one, folders, in_turn) for one in runs}
            while waiting:
                finished, waiting = wait(waiting, timeout=EVERY, return_when=FIRST_COMPLETED)
                for one in finished:
                    one.result()
                tell(f"{len(outcomes):,} answers, {len(runs) - len(waiting)} of {len(runs)} runs played")
        except BaseException:
            outcomes.close()  # the other runs end at their next question
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
