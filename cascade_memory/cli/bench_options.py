"""The options of ``cascade-memory bench`` that several commands have: the settings of the methods, and deep search."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.setup import Setup
    from cascade_memory.evaluation.search.settings import Searching

A_MODEL = "the folder of a model, or its name on the Hugging Face hub (owner/name)"
SEARCHED = "2wiki"
_OPTIONS = ("search", "search_tool", "retrieval", "judge_model", "judge_base_url")
JUDGES_OF_SEARCH = ("labels", "model")


def add_setup(verb: argparse.ArgumentParser, *, tuned: bool = False) -> None:
    """Add the options to ``bench run``, or to ``bench tune``, which chooses alpha and the learning rate itself."""
    setup = verb.add_argument_group("settings of the methods; they are part of what a row stands for")
    about = f"let the paper's methods choose with this reranker instead of the light features: {A_MODEL}"
    setup.add_argument("--ranker", metavar="MODEL", help=about)
    setup.add_argument("--embedder", metavar="MODEL", help=f"recall with this embedder: {A_MODEL}")
    about = "how many cases are shown (default 1), by methods that do not say so in their name; for ICRL, how many trials"
    setup.add_argument("--k", type=int, metavar="K", help=about)
    if not tuned:
        about = "the weight of the exploration bonus (default 0.1), of methods that explore; each of several is played"
        setup.add_argument("--alpha", type=float, nargs="+", metavar="A", help=about)
        about = "the learning rate of Neural-LinLogUCB and Neural-LinUCB (with --ranker: of the reranker too; default 1e-5)"
        setup.add_argument("--lr", type=float, metavar="RATE", help=about)

        about = "authors: where --alpha and --lr are not given, those that the paper's authors published for the model and task"
        setup.add_argument("--settings", choices=["authors"], help=about)


def setups_of(options: argparse.Namespace) -> list[Setup]:
    """Return the settings that the options name: one for each alpha, or a single one."""
    from cascade_memory.evaluation.bench.authors import AuthorsSettings
    from cascade_memory.evaluation.bench.setup import Setup

    settings = None
    if getattr(options, "settings", None) == "authors":
        settings = AuthorsSettings(thinks=not options.act_only, web=getattr(options, "search", None) is not None)
    first = Setup(
        ranker=options.ranker,
        embedder=options.embedder,
        k=options.k,
        learning_rate=getattr(options, "lr", None),
        settings=settings,
    )
    return [replace(first, alpha=alpha) for alpha in getattr(options, "alpha", None) or [None]]


def add_search(run: argparse.ArgumentParser) -> None:
    """Add the options of deep search with a real model."""
    search = run.add_argument_group(f"in deep search with a real model (--tasks {SEARCHED})")
    about = "an MCP server to search with: a command for stdio, in quotes, or a URL (default: the passages of the data)"
    search.add_argument("--search", metavar="SERVER", help=about)
    search.add_argument("--search-tool", metavar="NAME", help="its tool (default: the only one that takes one text)")
    about = "how passages of the data are found: dense (vectors, the default), bm25 (words), or both"
    search.add_argument("--retrieval", metavar="HOW", help=about)
    about = "with --judge model: the model that judges the answers (default: the one that gives them)"
    search.add_argument("--judge-model", metavar="NAME", help=about)
    about = "its server, which gets the same OPENAI_API_KEY (default: --base-url)"
    search.add_argument("--judge-base-url", metavar="URL", help=about)


def check_search(options: argparse.Namespace) -> None:
    """Refuse options that would have no effect."""
    only = (options.tasks == [SEARCHED] or options.suite == "paper") and options.model and not options.stream
    for one in _OPTIONS:
        if getattr(options, one) is not None and not only:
            raise InvalidInput(f"--{one.replace('_', '-')} can only be used with --model and --tasks {SEARCHED}")
    if only and options.judge not in (None, *JUDGES_OF_SEARCH):
        raise InvalidInput(f"with --tasks {SEARCHED}, the judge is one of {', '.join(JUDGES_OF_SEARCH)}, not {options.judge!r}")
    if options.judge is not None and not options.stream and not only:
        raise InvalidInput(f"--judge can only be used with --stream, or with --model and --tasks {SEARCHED}")
    if options.judge != "model" and (options.judge_model or options.judge_base_url):
        raise InvalidInput("--judge-model and --judge-base-url can only be used with --judge model")
    if options.search and options.retrieval:
        raise InvalidInput("--retrieval is for the passages of the data, which are not searched with --search")


def searching_of(options: argparse.Namespace) -> Searching:
    """Return the settings of deep search: how the model searches, and which model, if any, judges the answers."""
    from cascade_memory.evaluation.model import OpenAICompatible
    from cascade_memory.evaluation.search.settings import Searching

    judge = None
    timeout, patience = waiting(options)
    if options.judge == "model" and not options.stream:
        judge = OpenAICompatible(
            base_url=options.judge_base_url or options.base_url,
            model=options.judge_model or options.model,
            temperature=0.05,  # the paper's settings for the judge
            extra={} if options.judge_model else options.sampling,
            timeout=timeout,
            patience=patience,
        )
    return Searching(server=options.search, tool=options.search_tool, retrieval=options.retrieval or "dense", judge=judge)


def waiting(options: argparse.Namespace) -> tuple[float, float]:
    """Return how many seconds to wait for a server: for one attempt, and for all attempts of a request."""
    timeout = 120.0 if options.timeout is None else float(options.timeout)
    return timeout, max(600.0, 5 * timeout)
