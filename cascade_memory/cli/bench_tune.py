"""``cascade-memory bench tune``: chooses the learning rate and alpha of a method on the first tasks of a stream."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli import bench_options
from cascade_memory.cli.arguments import positive
from cascade_memory.cli.bench_data import add_data, folder_or_bundled
from cascade_memory.cli.bench_own import add_server, chat_of, check_tasks
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import FILE, TUNABLE

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.tuning import Tuning
    from cascade_memory.evaluation.model import Model


def add(bench: Commands) -> None:
    """Add the command."""
    command = bench.command("tune", tune, "choose a method's parameters on the first tasks of a stream")
    command.add_argument("--task", nargs="+", required=True, metavar="TASK", help="one or more tasks; each is tuned by itself")
    command.add_argument("--method", choices=list(TUNABLE), default="Neural-LinLogUCB")
    bench_options.add_setup(command, tuned=True)
    command.add_argument("--limit", type=positive, default=300, help="only the first tasks of the stream (default 300)")
    command.add_argument("--seeds", type=positive, default=1, help="how many times they are played (default 1)")
    about = "values to try (default: the paper's)"
    command.add_argument("--learning-rates", type=float, nargs="+", metavar="X", help=about)
    about = "values to try (default: the paper's, 0.1 to 1)"
    command.add_argument("--alphas", type=float, nargs="+", metavar="X", help=about)
    command.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="number of parallel processes")
    command.add_argument("--out", type=Path, default=Path("results/tuning.jsonl"), help="the file for the rows")
    add_data(command)
    about = "with a real model, which plays the stream in its own order (default: a SIMULATED solver, in shuffled orders)"
    add_server(command.add_argument_group(about))


def tune(options: argparse.Namespace) -> int:
    """Choose parameters for each task, and print what the tuning cost."""
    from cascade_memory.evaluation.bench.measure import Staged
    from cascade_memory.evaluation.bench.plan import Run
    from cascade_memory.evaluation.bench.runner import run as run_all
    from cascade_memory.evaluation.bench.stages import stage_for
    from cascade_memory.evaluation.bench.tuning import GRIDS
    from cascade_memory.evaluation.bench.tuning import tune as tune_method

    data, model = folder_or_bundled(options.data), _model(options)
    _check_tasks(options.task, data, model)
    (setup,) = bench_options.setups_of(options)
    play_all = partial(
        run_all,
        data=data,
        target=options.out,
        staged=stage_for if model is None else Staged(model, None, model.declared),
        jobs=options.jobs,
        progress=False if options.json else None,
        models=setup.folders,
    )
    given: dict[str, Sequence[float] | None] = {"learning_rate": options.learning_rates, "alpha": options.alphas}
    grids = {name: values or GRIDS[name] for name, values in given.items()}
    solver, order = ("simulated", "") if model is None else (model.name, FILE)
    found = {
        task: tune_method(
            setup.of(Run(task, options.method, 0, options.limit, solver=solver, order=order)), options.seeds, play_all, grids
        )
        for task in options.task
    }
    if options.json:
        tuned = [_as_json(task, one, model) for task, one in found.items()]
        print(json.dumps(tuned[0] if len(tuned) == 1 else tuned))
        return 0
    for task, one in found.items():
        _print(f"{'SIMULATED solver' if model is None else f'model {solver}'}, {options.method} on {task}", one)
    print(f"rows: {options.out}")
    return 0


def _model(options: argparse.Namespace) -> Model | None:
    """Return the real model that the options name, which samples as the paper's; None if there is none."""
    from cascade_memory.evaluation.bench.authors import sampling_of
    from cascade_memory.evaluation.model import Model

    if not options.model:
        for one in ("base_url", "sampling", "timeout", "act_only", "prompt"):
            if getattr(options, one):
                raise InvalidInput(f"--{one.replace('_', '-')} can only be used with --model")
        return None
    chat = chat_of(options, {**sampling_of(options.model), **options.sampling})
    return Model(chat=chat, thinks=not options.act_only, prompt=options.prompt or "chat")


def _check_tasks(tasks: list[str], data: Path, model: Model | None) -> None:
    from cascade_memory.evaluation.bench.plan import ALONE
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    if model is not None:
        check_tasks(tasks, data)
        return
    for task in tasks:
        if task not in ALONE:
            raise InvalidInput(f"{task!r} has no declared simulated solver to tune with; there are {', '.join(ALONE)}")
        if task not in CATALOGUE or not CATALOGUE[task].is_there(data):
            raise InvalidInput(f"no data for {task!r} in {data}: cascade-memory bench data lists what is there")


def _cost(found: Tuning) -> dict[str, Any]:
    runs = sum(len(rows) for _, rows in found.trials)
    return {"runs": runs, "episodes": found.episodes, "seconds": round(found.seconds, 1)}


def _as_json(task: str, found: Tuning, model: Model | None) -> dict[str, Any]:
    from cascade_memory.evaluation.bench.tuning import rate

    winner = {"winner": found.winner[0], "rate": rate(found.winner)}
    return {"task": task, "simulated": model is None, **winner, **_cost(found)}


def _print(title: str, found: Tuning) -> None:
    from cascade_memory.evaluation.bench.tuning import rate

    parameters, best, cost = found.winner[0], rate(found.winner), _cost(found)
    lines = [[*(f"{value:g}" for value in trial[0].values()), f"{100 * rate(trial):.1f}"] for trial in found.trials]
    print_table(f"{title}: success in percent", [*parameters, "success"], lines)
    print(f"winner: {', '.join(f'{name} {value:g}' for name, value in parameters.items())}: {100 * best:.1f} %")
    print(f"cost of the tuning: {cost['runs']} runs, {cost['episodes']:,} episodes, {cost['seconds']} s")
