"""The options of ``cascade-memory bench`` for a reranker, an embedder, k, alpha and a learning rate."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.setup import Setup

A_MODEL = "the folder of a model, or its name on the Hugging Face hub (owner/name)"


def add_options(verb: argparse.ArgumentParser, *, tuned: bool = False) -> None:
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
