"""The options of ``cascade-memory bench run`` for deep search with a real model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.evaluation.search.settings import Searching

TASK = "2wiki"
_OPTIONS = ("search", "search_tool", "retrieval", "judge_model", "judge_base_url")
JUDGES = ("labels", "model")


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of deep search with a real model."""
    search = run.add_argument_group(f"in deep search with a real model (--tasks {TASK})")
    about = "an MCP server to search with: a command for stdio, in quotes, or a URL (default: the passages of the data)"
    search.add_argument("--search", metavar="SERVER", help=about)
    search.add_argument("--search-tool", metavar="NAME", help="its tool (default: the only one that takes one text)")
    about = "how passages of the data are found: dense (vectors, the default), bm25 (words), or both"
    search.add_argument("--retrieval", metavar="HOW", help=about)
    about = "with --judge model: the model that judges the answers (default: the one that gives them)"
    search.add_argument("--judge-model", metavar="NAME", help=about)
    about = "its server, which gets the same OPENAI_API_KEY (default: --base-url)"
    search.add_argument("--judge-base-url", metavar="URL", help=about)


def check(options: argparse.Namespace) -> None:
    """Refuse options that would have no effect."""
    only = (options.tasks == [TASK] or options.suite == "paper") and options.model and not options.stream
    for one in _OPTIONS:
        if getattr(options, one) is not None and not only:
            raise InvalidInput(f"--{one.replace('_', '-')} can only be used with --model and --tasks {TASK}")
    if only and options.judge not in (None, *JUDGES):
        raise InvalidInput(f"with --tasks {TASK}, the judge is one of {', '.join(JUDGES)}, not {options.judge!r}")
    if options.judge is not None and not options.stream and not only:
        raise InvalidInput(f"--judge can only be used with --stream, or with --model and --tasks {TASK}")
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
