"""``cascade-memory bench run --suite paper``: every experiment of the paper for which there are data and models."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.cli.bench_options import setups_of
from cascade_memory.cli.bench_report import print_success, report_if_possible
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import FILE
from cascade_memory.visible import visible

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.forecast import Forecast
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
    from cascade_memory.evaluation.bench.authors import is_behind_an_api
    from cascade_memory.evaluation.bench.human import HUMAN
    from cascade_memory.evaluation.bench.measure import measure
    from cascade_memory.evaluation.bench.on_reranker import RERANKED
    from cascade_memory.evaluation.bench.paper_suite import parts

    _check(options)
    data = folder_of_data(options.data)
    found, absent = parts(
        data,
        gradient=bool(options.gradient),
        tasks=options.tasks,
        methods=options.methods,
        passages=options.search is None,
        licensed=not is_behind_an_api(options.model or ""),
    )
    if not found:
        others = ["none of these methods is in the paper's suite"] if options.methods else []
        raise InvalidInput("; ".join([*absent.values(), *others]))
    choosing = {HUMAN[method].method if method in HUMAN else method for part in found for method in part.methods}
    if options.ranker is None and choosing & set(RERANKED) and not options.dry_run:
        raise InvalidInput(_NEEDS_A_RERANKER)
    setups = _setups(options)
    if not options.json:
        _announce(options, found, absent, setups, solver_of)
    if options.dry_run:
        return 0
    rows: list[dict[str, Any]] = []
    failed: list[InvalidInput] = []
    for part in found:
        try:
            rows += measure(
                part.tasks,
                data=data,
                solver=solver_of(_of_part(options, part)),
                out=options.out,
                methods=part.methods,
                seeds=_seeds(options),
                limit=options.limit,
                order=options.order or FILE,
                setup=setups,
                jobs=_jobs(options),
                progress=False if options.json else None,
            )
        except InvalidInput as error:  # the data of one part must not keep the others from being played and reported
            failed.append(InvalidInput(f"{part.name}: {error}"))
    if failed and not rows:
        raise failed[0]
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return _complained(failed)
    for solver in dict.fromkeys(row["solver"] for row in rows):
        print_success(f"model {solver}", [row for row in rows if row["solver"] == solver])
    print(f"rows: {options.out}")
    report_if_possible(options.out, options.report)
    return _complained(failed)


def _setups(options: argparse.Namespace) -> list[Setup]:
    """Return the settings of the methods; a dry run goes without a reranker and an embedder that are no folders here."""
    setups = setups_of(options)
    if not options.dry_run:
        return setups
    # A name on the hub is left out; what looks like a folder and is none is refused later.
    local = {kind: None if _is_on_hub(name := getattr(options, kind)) else name for kind in ("ranker", "embedder")}
    return [replace(one, **local) for one in setups]


def _is_on_hub(name: str | None) -> bool:
    return name is not None and not Path(name).is_dir() and name.count("/") == 1 and not name.startswith((".", "/", "~"))


def _complained(failed: list[InvalidInput]) -> int:
    """Print an error for each part that could not be played; return the exit code, which is 0 if there is none."""
    for error in failed:
        sys.stderr.write(f"not played: {visible(str(error))}\n")
    return 2 if failed else 0


def _jobs(options: argparse.Namespace) -> int:
    return 1 if options.gradient else options.jobs  # several processes would each load the model


def _check(options: argparse.Namespace) -> None:
    if not (options.model or options.gradient):
        raise InvalidInput("the paper's suite is played by a language model: --model NAME --base-url URL, or --gradient FOLDER")
    if options.stream or options.rewards:
        raise InvalidInput(f"--stream and --rewards cannot be used with --suite {NAME}")
    for one in ("alpha", "lr", "k"):
        if options.gradient and getattr(options, one) is not None:
            raise InvalidInput(f"--{one} is of methods with a memory, which --suite {NAME} does not play with --gradient")
    from cascade_memory.evaluation.bench.paper_suite import METHODS
    from cascade_memory.evaluation.bench.plan import PAPER

    if unknown := sorted(set(options.methods or ()) - set(METHODS)):
        raise InvalidInput(f"the paper has no method {unknown[0]!r}; it has {', '.join(METHODS)}")
    if unknown := sorted(set(options.tasks or ()) - set(PAPER)):
        raise InvalidInput(f"the paper has no task {unknown[0]!r}; it has {', '.join(PAPER)}")


def _seeds(options: argparse.Namespace) -> int:
    from cascade_memory.evaluation.bench.plan import SUITES

    return SUITES[NAME].seeds if options.seeds is None else options.seeds


def _of_part(options: argparse.Namespace, part: Part) -> argparse.Namespace:
    """Return the options for one part: those of deep search apply only there, and ``--act-only`` only to tasks in worlds."""
    without = {} if part.name == "deep search" else dict.fromkeys(("search", "search_tool", "retrieval", "judge"))
    acts = options.act_only and part.name == "in worlds"
    training = options.training
    if options.gradient and options.settings:
        from cascade_memory.evaluation.bench.authors import gradient_rate_of

        training = {"learning_rate": gradient_rate_of(part.tasks[0]), **training}
    return argparse.Namespace(**{**vars(options), **without, "act_only": acts, "training": training})


def _announce(
    options: argparse.Namespace, found: list[Part], absent: Mapping[str, str], setups: list[Setup], solver_of: Solvers
) -> None:
    """Print what each part will take, and what cannot be played; refuse a file whose rows were measured with other settings."""
    from cascade_memory.evaluation.bench.forecast import Forecast, forecast
    from cascade_memory.evaluation.bench.plan import Suite
    from cascade_memory.evaluation.bench.rows import Rows
    from cascade_memory.evaluation.bench.setup import under_each

    known, data, order = Rows(options.out), folder_of_data(options.data), options.order or FILE
    total, seeds = Forecast(0, 0, 0), _seeds(options)
    for part in found:
        solver = solver_of(_of_part(options, part))
        suite = Suite(tasks=part.tasks, methods=part.methods, seeds=_seeds(options), limit=options.limit, order=order)
        runs, _ = under_each(setups, (replace(run, solver=solver.name) for run in suite.runs()))
        for run in runs:
            known.check_declared(asdict(run), solver.declared)
        left = known.missing(runs)
        print(
            f"{part.name} ({', '.join(part.tasks)}; {len(part.methods)} methods, {seeds} {'seed' if seeds == 1 else 'seeds'}):"
        )
        ahead = forecast(left, data, judged=options.judge == "model")
        total += ahead
        print(f"  {ahead.sentence(len(left), _jobs(options))}")
        if len(left) < len(runs):
            print(f"  {len(runs) - len(left):,} runs have rows already")
    for line in _of_own_models(options, total):
        print(line)
    if options.prices:
        prompt, reply = options.prices
        print(f"cost at these prices: at most {(prompt * total.prompt_tokens + reply * total.reply_tokens) / 1e6:,.2f}")
    for why in absent.values():
        print(f"not played: {why}")


def _of_own_models(options: argparse.Namespace, total: Forecast) -> list[str]:
    """Say how long the reranker and a language model in this process will compute."""
    from cascade_memory.evaluation.bench.forecast import PAPER_RANKER, in_words, operations_a_second, parameters_in

    lines: list[str] = []
    speed = operations_a_second() if total.ranked or options.gradient else 1.0
    if total.ranked:
        folder = Path(options.ranker or "")
        known = options.ranker is not None and folder.is_dir()
        which = "the reranker" if known else "the reranker, taken to be as large as the paper's"
        lines.append(in_words(which, parameters_in(folder) if known else PAPER_RANKER, total.ranked, speed))
    if options.gradient and Path(options.gradient).is_dir():
        lines.append(in_words("the language model", parameters_in(Path(options.gradient)), total.trained, speed))
    return lines
