"""``cascade-memory bench run --suite paper``: every experiment of the paper for which there are data and models."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.bench_report import print_success, report_if_possible
from cascade_memory.cli.bench_setup import setup_of
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import FILE, PAPER, SUITES

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.measure import Attempts
    from cascade_memory.evaluation.bench.paper_suite import Part
    from cascade_memory.evaluation.bench.setup import Setup

NAME = "paper"
_NEEDS_A_RERANKER = (
    "the paper's methods choose with a reranker: name it with --ranker, such as Alibaba-NLP/gte-reranker-modernbert-base or "
    "its folder; or choose methods that need none: --methods zero-shot ICRL ICRLPlus"
)
Solvers = Callable[[argparse.Namespace], "Attempts"]


def run(options: argparse.Namespace, solver_of: Solvers) -> int:
    """Say what will be played and what it takes; play it, unless this is a dry run; print the results and write the report."""
    from cascade_memory.evaluation.bench.measure import measure
    from cascade_memory.evaluation.bench.on_reranker import RERANKED
    from cascade_memory.evaluation.bench.paper_suite import parts

    _check(options)
    data, setup = folder_of_data(options.data), setup_of(options)
    found, absent = parts(
        data,
        gradient=bool(options.gradient),
        tasks=options.tasks,
        methods=options.methods,
        passages=options.search is None,
    )
    if not found:
        others = ["none of these methods is in the paper's suite"] if options.methods else []
        raise InvalidInput("; ".join([*absent.values(), *others]))
    if options.ranker is None and any(method in RERANKED for part in found for method in part.methods):
        raise InvalidInput(_NEEDS_A_RERANKER)
    if not options.json:
        _announce(options, found, absent, setup)
    if options.dry_run:
        return 0
    rows: list[dict[str, Any]] = []
    for part in found:
        rows += measure(
            part.tasks,
            data=data,
            solver=solver_of(_of_part(options, part)),
            out=options.out,
            methods=part.methods,
            seeds=_seeds(options),
            limit=options.limit,
            order=options.order or FILE,
            setup=setup,
            jobs=1 if options.gradient else options.jobs,  # several processes would each load the model
            progress=False if options.json else None,
        )
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for solver in dict.fromkeys(row["solver"] for row in rows):
        print_success(f"model {solver}", [row for row in rows if row["solver"] == solver])
    print(f"rows: {options.out}")
    report_if_possible(options.out, options.report)
    return 0


def _check(options: argparse.Namespace) -> None:
    if not (options.model or options.gradient):
        raise InvalidInput("the paper's suite is played by a language model: --model NAME --base-url URL, or --gradient FOLDER")
    if options.stream or options.rewards:
        raise InvalidInput(f"--stream and --rewards cannot be used with --suite {NAME}")
    if unknown := sorted(set(options.tasks or ()) - set(PAPER)):
        raise InvalidInput(f"the paper has no task {unknown[0]!r}; it has {', '.join(PAPER)}")


def _seeds(options: argparse.Namespace) -> int:
    return SUITES[NAME].seeds if options.seeds is None else options.seeds


def _of_part(options: argparse.Namespace, part: Part) -> argparse.Namespace:
    """Return the options that concern a part: what is said of deep search is for deep search alone."""
    if part.name == "deep search":
        return options
    return argparse.Namespace(**{**vars(options), "search": None, "search_tool": None, "retrieval": None, "judge": None})


def _announce(options: argparse.Namespace, found: list[Part], absent: Any, setup: Setup) -> None:
    """Print each part with what it will take, and what cannot be played."""
    from cascade_memory.evaluation.bench.forecast import forecast
    from cascade_memory.evaluation.bench.plan import Suite
    from cascade_memory.evaluation.bench.rows import Rows

    known, data, order = Rows(options.out), folder_of_data(options.data), options.order or FILE
    for part in found:
        suite = Suite(tasks=part.tasks, methods=part.methods, seeds=_seeds(options), limit=options.limit, order=order)
        runs = [setup.of(run) for run in suite.runs()]
        played = {
            (row["task"], row["method"], row["seed"]) for row in known.rows if row.get("solver") not in ("simulated", "reuse")
        }
        left = [run for run in runs if (run.task, run.method, run.seed) not in played]
        print(f"{part.name} ({', '.join(part.tasks)}; {len(part.methods)} methods, {_seeds(options)} seeds):")
        print(f"  {forecast(left, data).sentence(len(left), options.jobs)}")
        if len(left) < len(runs):
            print(f"  {len(runs) - len(left):,} runs have rows already")
    for why in absent.values():
        print(f"not played: {why}")
