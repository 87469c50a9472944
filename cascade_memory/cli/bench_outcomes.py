"""``cascade-memory bench outcomes``: asks a model once for each task and set of shown cases, and stores the answers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli import bench_options
from cascade_memory.cli.arguments import positive
from cascade_memory.cli.bench_data import add_data, folder_or_bundled
from cascade_memory.cli.bench_own import chat_of, check_tasks, json_object
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import FILE, SHUFFLED

if TYPE_CHECKING:
    from cascade_memory.evaluation.model.chat import Chat


def add(bench: Commands) -> None:
    """Add the command."""
    about = "ask a model once for each task and what is shown with it, so that any memory can be played without the model"
    make = bench.command("outcomes", run, about)
    make.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table; it is continued if it exists")
    model = make.add_argument_group("the model: behind a server, or in this process")
    model.add_argument("--model", metavar="NAME", help="the model's name on its server")
    model.add_argument("--base-url", metavar="URL", help="address of an OpenAI-compatible server")
    model.add_argument("--timeout", type=float, metavar="SECONDS", help="how long to wait for a reply (default: 120)")
    about = "a folder with a causal language model and its tokenizer, which answers in batches in this process"
    model.add_argument("--folder", metavar="FOLDER", help=about)
    about = "settings as in bench run; the temperature is 0 (default: no other settings but max_tokens 256)"
    model.add_argument("--sampling", type=json_object, default={}, metavar="JSON", help=about)
    about = 'what else to say of the model in the head of the table: \'{"licence": "Apache-2.0"}\''
    model.add_argument("--about", type=json_object, default={}, metavar="JSON", help=about)
    played = make.add_argument_group("what is played")
    played.add_argument("--tasks", nargs="+", required=True, metavar="TASK", help="tasks, as in bench run")
    played.add_argument("--methods", nargs="+", required=True, metavar="METHOD", help="methods, as in bench run")
    played.add_argument("--seeds", type=positive, default=3, help="how many orders of each task (default 3)")
    played.add_argument("--limit", type=positive, default=300, help="only the first tasks of each stream (default 300)")
    played.add_argument("--order", choices=[SHUFFLED, FILE], default=SHUFFLED, help="as in bench run")
    played.add_argument("--act-only", action="store_true", help="in worlds: the model writes actions without thoughts")
    played.add_argument("--show", choices=("text", "turns"), default="text", help="how the model sees the cases")
    about = "how many runs are played at once, and so how many prompts are answered at once (default 32)"
    played.add_argument("--together", type=positive, default=32, metavar="N", help=about)
    add_data(make)
    bench_options.add_setup(make)


def run(options: argparse.Namespace) -> int:
    """Ask the model for the answers that the table lacks; print how often each kind of prompt succeeded."""
    from cascade_memory.evaluation.bench.methods import KNOWN
    from cascade_memory.evaluation.bench.plan import Suite
    from cascade_memory.evaluation.model import Model
    from cascade_memory.evaluation.outcomes import Outcomes, ask_all

    data = folder_or_bundled(options.data)
    check_tasks(options.tasks, data)
    if unknown := sorted(set(options.methods) - set(KNOWN)):
        raise InvalidInput(f"there is no method {unknown[0]!r}; there are {', '.join(KNOWN)}")
    chat, about = _chat(options)
    suite = Suite(
        tasks=options.tasks,
        methods=options.methods,
        seeds=options.seeds,
        limit=options.limit,
        order=FILE if options.order == FILE else "",
    )
    try:
        with Outcomes(options.out, chat, about={**about, **options.about}) as outcomes:
            solver = Model(chat=outcomes, thinks=not options.act_only, show=options.show)
            setups = bench_options.setups_of(options)
            ask_all(suite, data=data, solver=solver, setup=setups, together=options.together, tell=_tell(options))
            if sys.stderr.isatty() and not options.json:
                sys.stderr.write("\r\033[K")
            met, answers = outcomes.worth(), len(outcomes)
    finally:
        close: Callable[[], None] | None = getattr(chat, "close", None)
        if close is not None:
            close()
    if options.json:
        print(json.dumps({"file": str(options.out), "answers": answers, "met": met}))
        return 0
    rows = [
        (task, show, str(shown), f"{tasks:,}", f"{prompts:,}", f"{100 * share:.1f}")
        for task, show, shown, tasks, prompts, share in met
    ]
    print_table(f"{outcomes.name}: what was met", ("task", "as", "cases shown", "tasks", "prompts", "success %"), rows)
    print(f"{answers:,} answers in {options.out}. To play them: cascade-memory bench run --outcomes {options.out} --tasks ...")
    return 0


def _chat(options: argparse.Namespace) -> tuple[Chat, dict[str, Any]]:
    """Return the chat model that the options name, and what the table of answers records about it."""
    sampling = {"temperature": 0, "top_p": None, "max_tokens": 256, **options.sampling}
    if options.folder and options.model:
        raise InvalidInput("--folder and --model exclude each other: a model is in this process, or behind a server")
    if not options.folder and not (options.model and options.base_url):
        raise InvalidInput("name the model: --model NAME --base-url URL for one behind a server, or --folder FOLDER")
    if options.folder:
        from cascade_memory.evaluation.outcomes import LocalBatches, dtype_in

        if unknown := sorted({name for name, value in sampling.items() if value is not None} - {"temperature", "max_tokens"}):
            raise InvalidInput(f"a model in this process takes only max_tokens, not {unknown[0]!r}")
        if sampling["temperature"] != 0:
            raise InvalidInput(
                f"a model in this process answers with the likeliest words: temperature 0, not {sampling['temperature']!r}"
            )
        most = sampling["max_tokens"]
        if type(most) is not int or most < 1:
            raise InvalidInput(f"max_tokens must be a whole number from 1 on, not {most!r}")
        chat = LocalBatches(options.folder, most=most, batch=options.together, dtype=dtype_in(options.out))
        return chat, dict(chat.about)
    return chat_of(options, sampling), {"server": options.base_url}


def _tell(options: argparse.Namespace) -> Callable[[str], None]:
    """Return the function that shows the progress: it rewrites one line in a terminal, and prints further lines elsewhere."""

    def tell(said: str) -> None:
        if not options.json:
            sys.stderr.write(f"\r\033[K{said} ..." if sys.stderr.isatty() else f"{said}\n")
            sys.stderr.flush()

    return tell
