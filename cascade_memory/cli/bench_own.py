"""``cascade-memory bench run`` with a real model, or on the user's own stream."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cascade_memory.cli import bench_options
from cascade_memory.cli.bench_data import folder_or_bundled
from cascade_memory.cli.bench_options import setups_of
from cascade_memory.cli.bench_report import print_success, report_if_possible
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import GRADIENT, SHUFFLED, loaded_by_name

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.measure import Attempts
    from cascade_memory.evaluation.model import Model, OpenAICompatible
    from cascade_memory.evaluation.model.chat import Chat
    from cascade_memory.evaluation.tasks.task import Task


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of ``bench run`` for a model and for the user's own stream."""
    model = run.add_argument_group("with a real model (its key is read from the environment variable OPENAI_API_KEY)")
    add_server(model)
    model.add_argument("--prices", nargs=2, type=float, metavar=("PROMPT", "REPLY"), help="prices of a million tokens")
    about = "how it sees the cases: between fences before the task (text, the default), or as earlier turns of the chat"
    model.add_argument("--show", choices=("text", "turns"), help=about)
    about = "play against a table that bench outcomes made: no model is asked, and none is needed"
    model.add_argument("--outcomes", type=Path, metavar="FILE", help=about)
    local = run.add_argument_group("with a language model in this process, also trained while it plays (REINFORCE + LoRA)")
    local.add_argument(
        "--gradient", metavar="FOLDER", help="a causal language model with its tokenizer; plays one run at a time"
    )
    about = 'change the paper\'s settings of the training: \'{"learning_rate": 1e-5, "batch": 32, "kl": 0.1}\''
    local.add_argument("--training", type=json_object, default={}, metavar="JSON", help=about)
    bench_options.add_search(run)
    own = run.add_argument_group("on a stream of your own")
    own.add_argument("--stream", type=Path, metavar="FILE", help='JSON lines, each with "task" and "label"')
    about = "judges a model's replies: exact (default), jaccard, or module:function; in deep search labels (default) or model"
    own.add_argument("--judge", metavar="JUDGE", help=about)
    own.add_argument("--instruction", metavar="TEXT", help="the instruction that a model gets before each task")
    own.add_argument(
        "--alone", type=float, metavar="P", help="without a model: how often the SIMULATED solver succeeds without a case"
    )


def add_server(model: Any) -> None:
    """Add the options of a model behind a server to a group of options."""
    model.add_argument("--model", metavar="NAME", help="the model's name on its server")
    about = "address of an OpenAI-compatible server, such as http://localhost:8000/v1"
    model.add_argument("--base-url", metavar="URL", help=about)
    about = "change how it samples (temperature 0.1, top-p 0.8; the paper's suite samples as its authors, without thinking); "
    about += 'null means the server\'s default: \'{"temperature": 0.6, "top_k": null}\''
    model.add_argument("--sampling", type=json_object, default={}, metavar="JSON", help=about)
    model.add_argument("--timeout", type=float, metavar="SECONDS", help="how long to wait for a reply (default: 120)")
    about = "in ScienceWorld and ALFWorld: the model writes actions without thoughts"
    model.add_argument("--act-only", action="store_true", help=about)
    about = "chat (default): the instruction in a system message; authors: everything in one message of the user"
    model.add_argument("--prompt", choices=("chat", "authors"), help=about)


def is_asked_for(options: argparse.Namespace) -> bool:
    """Say whether the command uses a real model or the user's own stream."""
    return bool(options.model or options.stream or options.gradient or options.outcomes)


def check(options: argparse.Namespace) -> None:
    """Refuse options that have no effect, or that exclude one another."""
    bench_options.check_search(options)
    needs: dict[str, tuple[str, ...]] = dict.fromkeys(("base_url", "timeout"), ("model",))
    needs |= dict.fromkeys(("prices", "act_only"), ("model", "outcomes"))
    needs |= {
        "show": ("model", "outcomes", "gradient"),
        "prompt": ("model", "gradient"),
        "sampling": ("model", "gradient"),
        "judge": ("model", "gradient", "outcomes"),
    }
    needs |= {"training": ("gradient",), **dict.fromkeys(("instruction", "alone"), ("stream",))}
    for one, others in needs.items():
        if getattr(options, one) not in (None, {}, False) and not any(getattr(options, other) for other in others):
            raise InvalidInput(f"--{one.replace('_', '-')} can only be used with --{' or --'.join(others)}")
    for one in ("wrong_cases", "misled"):
        if getattr(options, one) and is_asked_for(options):
            raise InvalidInput(f"--{one.replace('_', '-')} cannot be used with --model or --stream, nor with --gradient")
    if len([one for one in (options.model, options.gradient, options.outcomes) if one]) > 1:
        raise InvalidInput(
            "--model is a model behind a server, --gradient one in this process, and --outcomes a table of a model's answers: "
            "choose one of them"
        )
    if options.stream and options.stream.resolve() == options.out.resolve():
        raise InvalidInput(f"--out would write rows into the stream {options.stream}: name another file")
    if options.dry_run and options.suite != "paper":
        raise InvalidInput("--dry-run can only be used with --suite paper")


def run(options: argparse.Namespace) -> int:
    """Play the chosen tasks, and print the results."""
    from cascade_memory.evaluation.bench.measure import measure
    from cascade_memory.evaluation.bench.plan import SUITES

    suite = SUITES[options.suite]
    solver = solver_of(options)
    if options.stream:
        task, data, limit = _own_task(options), options.stream.parent, None
    else:
        task, data, limit = _tasks(options), folder_or_bundled(options.data), suite.limit
    rows = measure(
        task,
        data=data,
        solver=solver,
        out=options.out,
        methods=options.methods or (GRADIENT if options.gradient else suite.methods),
        seeds=suite.seeds if options.seeds is None else options.seeds,
        limit=limit if options.limit is None else options.limit,
        rewards=options.rewards or suite.rewards,
        order=options.order or SHUFFLED,
        setup=setups_of(options),
        jobs=1 if options.gradient else options.jobs,  # several processes would each load the model
        progress=False if options.json else None,
    )
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    real = options.model or options.gradient or options.outcomes
    print_success(f"model {solver.name}" if real else "SIMULATED solver", rows)
    if real:
        print(_spent(rows))
    for task, differs in {row["task"]: row["differs"] for row in rows if row.get("differs")}.items():
        print(f"{task} is not the paper's: {differs}")
    print(f"rows: {options.out}")
    report_if_possible(options.out, options.report)
    return 0


def _tasks(options: argparse.Namespace) -> list[str]:
    from cascade_memory.evaluation.bench.plan import SUITES
    from cascade_memory.evaluation.bench.stages import WORLDS
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    played = [
        name
        for name in SUITES[options.suite].tasks
        if name in CATALOGUE and (CATALOGUE[name].make is not None or name == bench_options.SEARCHED)
    ]
    folder = folder_or_bundled(options.data)
    names = options.tasks or [name for name in played if CATALOGUE[name].is_there(folder)]
    if options.gradient and (acted := [name for name in names if name in WORLDS]):
        raise InvalidInput(f"--gradient plays tasks with one answer each, not {acted[0]!r}, in which a model acts")
    check_tasks(names, folder, passages=options.search is None)
    return names


def check_tasks(names: Sequence[str], folder: Path, *, passages: bool = True) -> None:
    """Raise an error if a name is not that of a task, or if something that a task needs is missing."""
    from cascade_memory.evaluation.bench.stages import WORLDS, lacking
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, task_named

    for name in names:
        if name in WORLDS:
            if why := lacking(name, folder, passages=passages):
                raise InvalidInput(why)
            continue
        task_named(name)  # if there is no such task, this raises and lists the tasks
        if not CATALOGUE[name].is_there(folder):
            raise InvalidInput(f"no data for {name} in {folder}: cascade-memory bench data says where to get it")


def _own_task(options: argparse.Namespace) -> Task:
    from cascade_memory.evaluation.tasks.task import FileTask

    given = {"instruction": options.instruction} if options.instruction else {}
    return FileTask(name=options.stream.stem, file=options.stream.name, judge=_judge(options.judge or "exact"), **given)


def _judge(name: str) -> Callable[[str, Any], float]:
    from cascade_memory.evaluation.judging.labels import exact, jaccard

    known: Mapping[str, Callable[[str, Any], float]] = {"exact": exact, "jaccard": jaccard}
    if name in known:
        return known[name]
    if not name.partition(":")[2]:
        raise InvalidInput(f"a judge must be exact, jaccard, or module:function, not {name!r}")
    found = loaded_by_name(name, f"there is no judge {name!r}")
    if not callable(found):
        raise InvalidInput(f"the judge {name!r} is not a function of a reply and a label")
    return cast("Callable[[str, Any], float]", found)


def solver_of(options: argparse.Namespace) -> Attempts:
    """Return the solver that the options choose: a language model, a table of its answers, or a simulated solver."""
    if options.gradient:
        from cascade_memory.evaluation.gradient import LocalModel, Sampling, Training
        from cascade_memory.evaluation.gradient.settings import settings_from

        return LocalModel(
            folder=options.gradient,
            sampling=settings_from(Sampling, options.sampling),
            training=settings_from(Training, options.training),
            show=options.show or "text",
            prompt=options.prompt or "chat",
        )
    if options.outcomes:
        from cascade_memory.evaluation.outcomes import Outcomes

        return _model(options, Outcomes(options.outcomes))
    if not options.model:
        if options.alone is None:
            raise InvalidInput(
                "choose who solves the tasks: --model NAME --base-url URL, --gradient FOLDER, --outcomes FILE, "
                "or --alone P for a SIMULATED solver"
            )
        from cascade_memory.evaluation.bench.stage import Simulated

        return Simulated(alone=options.alone)
    if not options.base_url:
        raise InvalidInput("--model needs --base-url URL, the address of an OpenAI-compatible server")
    from cascade_memory.evaluation.bench.authors import sampling_of

    theirs = sampling_of(options.model) if options.suite == "paper" else {}
    return _model(options, chat_of(options, {**theirs, **options.sampling}))


def _model(options: argparse.Namespace, chat: Chat) -> Model:
    from cascade_memory.evaluation.model import Model, Prices

    prices = Prices(*options.prices) if options.prices else None
    searching = bench_options.searching_of(options)
    return Model(
        chat=chat,
        prices=prices,
        thinks=not options.act_only,
        show=options.show or "text",
        prompt=options.prompt or "chat",
        searching=searching,
    )


def chat_of(options: argparse.Namespace, sampling: Mapping[str, Any], retries: int = 6) -> OpenAICompatible:
    """Return the chat model behind the server that the options name."""
    from cascade_memory.evaluation.model import OpenAICompatible

    timeout, patience = bench_options.waiting(options)
    return OpenAICompatible(
        base_url=options.base_url,
        model=options.model,
        extra=sampling,
        timeout=timeout,
        retries=retries,
        patience=patience,
    )


def _spent(rows: list[dict[str, Any]]) -> str:
    tokens, requests = (sum(row[name] for row in rows) for name in ("tokens", "requests"))
    cost = sum(row["cost"] for row in rows) if rows and all(row["cost"] is not None for row in rows) else None
    said = f"{requests:,} requests, {tokens:,} tokens" + (f", cost {cost:.2f}" if cost is not None else "")
    if too_long := sum(row.get("too_long", 0) for row in rows):
        said += f"\n{too_long:,} requests were refused as too long, and their tasks count as not solved: let the server read "
        said += (
            "longer prompts, or ask for shorter replies (--sampling '{\"max_tokens\": 512}'), which many servers count as well"
        )
    if silent := sorted({row["task"] for row in rows if row.get("searches") == 0}):
        said += (
            f"\nno tool was called in {', '.join(silent)}: does the server pass calls on? See cascade-memory bench check-model"
        )
    return said


def json_object(text: str) -> dict[str, Any]:
    """Read an option that is a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("a JSON object is needed")
    return cast("dict[str, Any]", found)
