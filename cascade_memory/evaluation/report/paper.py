"""What stands beside the paper's figures: which of them belongs to a row, and what differs from the paper's experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cascade_memory.evaluation.bench.authors import AuthorsSettings, gradient_rate_of, is_the_same, model_beside, sampling_of
from cascade_memory.evaluation.bench.names import FILE, has_a_model
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.published import figure
from cascade_memory.evaluation.report.section import options_of
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

_JUDGE = "gpt-4o-mini"
# Names of methods here, and in the paper, whose CASCADE is the bandit Neural-LinLogUCB on a trained reranker.
_METHODS = {
    "zero-shot": "Zero-shot",
    "ICRL": "ICRL",
    "ICRLPlus": "ICRLPlus",
    "NP-CBR": "NP-CBR",
    "similarity": "NP-CBR",
    "REINFORCE + LoRA": "REINFORCE+LoRA",
    "LinLogUCB": "CASCADE w/ LinLogUCB",
    "NeuralLogUCB": "CASCADE w/ NeuralLogUCB",
    "Neural-LinUCB": "CASCADE w/ NeuralLinUCB",
    "Neural-LinLogUCB": "CASCADE",
    "Neural-LinLogUCB, authors' code": "CASCADE",
    "Neural-LinLogUCB without exploration": "CASCADE w/o exploration",
    "CASCADE": "CASCADE",
    "CASCADE, always a case": "CASCADE",
    "CASCADE without exploration": "CASCADE w/o exploration",
}
_NO_MEMORY = ("Zero-shot", "REINFORCE+LoRA")
_WITHOUT_RANKER = (*_NO_MEMORY, "ICRL", "ICRLPlus")
_CASCADE, _GREEDY, _GRADIENT = "CASCADE", "CASCADE w/o exploration", "REINFORCE+LoRA"
_EMBEDDER, _RERANKER = "gte-modernbert-base", "gte-reranker-modernbert-base"
_DEFAULTS = {"learning_rate": 1e-5, "alpha": 0.1}  # of the methods on a reranker, where a row names no others
_MIXED = ("qwen3-8b", "qwen3-14b", "qwen3-32b")  # these think unless they are told not to


def unlike(row: Row) -> list[str]:
    """Say what differs from the paper's experiment, as far as a row tells: model, sampling, data, order, rankers, settings.

    >>> unlike({"task": "mud", "method": "zero-shot", "solver": "Qwen3-32B", "n": 1740, "order": "file"})
    []
    >>> unlike({"task": "mud", "method": "CASCADE", "solver": "mini", "n": 50})
    ['model mini', '50 of 1,740 tasks', 'shuffled', 'light features, no reranker', 'default embedder']
    """
    theirs = _METHODS.get(str(row["method"]).partition(" (")[0], "")
    models: dict[str, str] = json.loads(row.get("models") or "{}")
    options = options_of(row)
    return [
        *_of_the_solver(row),
        *_of_the_stream(row),
        *([] if theirs in _WITHOUT_RANKER else _other("reranker", models.get("ranker"), _RERANKER)),
        *([] if theirs in _WITHOUT_RANKER else _other("embedder", models.get("embedder"), _EMBEDDER)),
        *([f"k = {options['k']:g}"] if options.get("k", 1) != 1 else []),
        *(_of_the_settings(row, theirs, options) if "ranker" in models or theirs == _GRADIENT else []),
    ]


def _of_the_solver(row: Row) -> list[str]:
    if not has_a_model(str(row["solver"])):
        return ["no language model"]
    solver, wanted = str(row["solver"]), model_beside(str(row["solver"]), str(row["task"]))
    judge = str(row.get("judged_by") or _JUDGE)
    return [
        *([] if is_the_same(solver, wanted) else [f"model {solver}"]),
        *_of_the_sampling(_declared(row), wanted),
        *_of_the_prompt(_declared(row)),
        *([] if _JUDGE in judge else [f"judged by {judge}"]),
        *_of_the_tools(row),
    ]


def _of_the_sampling(declared: Mapping[str, Any], wanted: str) -> list[str]:
    if not declared:
        return []
    theirs, here = {**sampling_of(wanted)}, "weights" in declared  # a model in this process, which no server samples
    quiet = theirs.pop("chat_template_kwargs", None)
    thinks = wanted.casefold() in _MIXED and declared.get("chat_template_kwargs") != quiet
    if here:  # the authors' own training samples without a penalty
        theirs.pop("presence_penalty", None)
    other = [name for name, value in theirs.items() if declared.get(name) != value]
    return [
        *(f"{name} {declared.get(name, 'of the server')}" for name in other),
        *(["thinking is not turned off"] if thinks and not here else []),
    ]


def _of_the_tools(row: Row) -> list[str]:
    if row["task"] == "mimic-iii":
        return ["tables of a sandbox, no pandas"]
    if row["task"] == "2wiki" and not _searches_the_web(row):
        return [f"searches {row.get('search') or 'passages of the folder'}, not 21 million passages by E5"]
    return []


def _of_the_prompt(declared: Mapping[str, Any]) -> list[str]:
    if not declared:
        return []
    return [
        *(["cases as turns"] if declared.get("show") == "turns" else []),
        *([] if declared.get("prompt") == "authors" else ["a system message"]),
    ]


def _of_the_settings(row: Row, theirs: str, options: Mapping[str, float]) -> list[str]:
    """Compare the learning rate and alpha with those that the authors published for the task and its model."""
    declared, used = _declared(row), {**_DEFAULTS, **options}
    if theirs == _GRADIENT:
        wanted, used = {"learning_rate": gradient_rate_of(str(row["task"]))}, {"learning_rate": declared.get("learning_rate")}
    elif theirs in (_CASCADE, _GREEDY):
        settings = AuthorsSettings(thinks=bool(declared.get("thinks", True)), web=_searches_the_web(row))
        wanted = settings(Run(str(row["task"]), str(row["method"]), 0, solver=str(row["solver"])))
    elif theirs.startswith(_CASCADE):  # the paper tunes its other bandits too, but publishes no settings of them
        names = ("learning_rate", "alpha") if theirs.endswith("NeuralLinUCB") else ("alpha",)
        return [f"{name.replace('_', ' ')} {used[name]:g}, theirs is not published" for name in names]
    else:
        return []
    if theirs == _GREEDY:
        wanted.pop("alpha", None)
    return [
        f"{name.replace('_', ' ')} {used[name]:g}, theirs {value:g}"
        for name, value in wanted.items()
        if used[name] is not None and used[name] != value
    ]


def _declared(row: Row) -> Mapping[str, Any]:
    return dict(row.get("declared") or {})


def _searches_the_web(row: Row) -> bool:
    return not str(row.get("search") or "passages").startswith("passages")


def _of_the_stream(row: Row) -> list[str]:
    entry = CATALOGUE.get(str(row["task"]))
    published = None if entry is None else entry.published
    if entry is None or published is None:
        return []
    said = str(row.get("differs", entry.stand_in))  # rows of models know which files were read
    size = [] if row["n"] == published.samples else [f"{row['n']:,} of {published.samples:,} tasks"]
    return [*([said] if said else []), *size, *([] if row.get("order") == FILE or row["task"] == "lfd" else ["shuffled"])]


def _other(kind: str, given: str | None, wanted: str) -> list[str]:
    if given is None:
        return ["light features, no reranker" if kind == "reranker" else "default embedder"]
    return [] if given.split("@")[0].endswith(wanted) else [f"{kind} {given.split('@')[0]}"]


def reported(task: str, method: str, row: Row | None = None) -> tuple[str, str, str] | None:
    """Return the paper's names of the model and the method, and its figure for them on a task; None if it reports none.

    The row says who solved the task, with or without thoughts, and with local search or a search server.

    >>> reported("banking77", "zero-shot")
    ('Qwen3-32B', 'Zero-shot', '66.66 ± 0.03')
    >>> reported("rca", 'Neural-LinLogUCB {"alpha": 0.7}', {"solver": "Qwen/Qwen3-4B"})
    ('Qwen3-4B', 'CASCADE', '57.45 ± 0.82')
    """
    entry, theirs = CATALOGUE.get(task), _METHODS.get(method.partition(" {")[0].partition(" (")[0])
    if entry is None or theirs is None:
        return None
    row = {"solver": "", **(row or {})}
    model = model_beside(str(row["solver"]), task)
    acts = bool(row["solver"]) and has_a_model(str(row["solver"]))
    thinks = acts and bool(_declared(row).get("thinks", True))
    found = figure(model, entry.paper_name, theirs, thinks=thinks, web=acts and _searches_the_web(row))
    return None if found is None else (model, theirs, found)
