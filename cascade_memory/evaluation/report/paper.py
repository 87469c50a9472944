"""Figures from the CASCADE paper, which are shown beside ours in a separate column: they come from a real 32B model."""

from __future__ import annotations

import json

from cascade_memory.evaluation.bench.names import FILE
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

CITATION = (
    "From the paper, CASCADE: Case-Based Continual Adaptation for Large Language Models During Deployment; Qwen3-32B, percent, "
    "mean ± standard deviation over five seeds. Single-turn tasks: its tables of overall results and of ablations. (The two "
    "tables swap MIMIC-IV-MSR and MIMIC-IV-TLP; here they are as in the first.) Multi-turn tasks: its text, without "
    "deviations; 2Wiki is the one with local RAG, by Qwen3-30B-A3B-Instruct-2507."
)

_TASKS = (
    *("DDXPlus", "MIMIC-IV-MR", "MIMIC-IV-MSR", "MIMIC-IV-TLP", "MUD", "CMDL"),
    *("Banking77", "SEntFiN", "RCA", "LFD", "SPIDER", "BIRD"),
)
# One figure per task, in the order above: percent solved, and after the slash the standard deviation.
_SINGLE_TURN = {
    "Zero-shot": "63.77/0.11 12.79/0.33 51.36/0.08 48.56/0.14 25.53/0.15 39.12/0.16 "
    "66.66/0.03 34.30/0.09 45.36/0.05 84.05/0.05 63.84/0.39 44.65/0.42",
    "ICRL": "66.11/0.10 12.95/2.10 50.82/0.13 50.23/0.11 57.03/0.24 44.06/0.26 "
    "67.59/0.03 33.77/0.02 41.83/0.05 83.55/0.14 70.95/0.13 50.86/0.23",
    "ICRLPlus": "64.91/0.13 30.29/0.83 52.24/0.09 51.05/0.22 58.33/0.22 43.22/0.21 "
    "67.61/0.06 35.39/0.28 43.34/0.09 83.91/0.07 71.11/0.17 50.52/0.21",
    "NP-CBR": "80.84/0.50 60.58/0.20 56.29/0.07 51.83/0.20 60.93/0.28 59.56/0.07 "
    "82.77/0.06 45.35/0.11 65.08/0.16 85.39/0.03 66.87/0.25 49.60/0.36",
    "REINFORCE+LoRA": "76.90/0.91 13.88/0.10 57.47/0.55 53.97/1.21 60.32/0.40 52.63/1.11 "
    "73.87/0.35 47.26/0.38 58.20/1.86 86.80/0.25 73.54/0.25 52.35/0.09",
    "CASCADE": "84.54/0.65 63.98/0.32 56.79/0.14 52.25/0.48 62.44/0.26 60.26/0.13 "
    "84.66/0.18 47.72/0.35 70.76/0.13 86.15/0.21 75.41/0.46 55.18/0.61",
    "CASCADE w/o exploration": "84.09/0.46 63.60/0.33 57.09/0.18 50.79/0.44 62.09/0.49 60.18/0.40 "
    "84.26/0.19 48.37/0.30 70.08/0.03 85.93/0.22 74.74/0.81 55.25/0.68",
    "CASCADE w/ LinLogUCB": "80.48/0.81 58.63/0.59 55.54/0.51 51.80/0.40 61.41/0.48 58.30/0.46 "
    "79.76/0.28 41.21/0.27 65.97/0.67 85.67/0.08 74.71/0.29 53.95/0.39",
    "CASCADE w/ NeuralLogUCB": "81.73/0.28 61.53/0.48 57.28/0.57 53.00/0.21 61.76/0.44 60.93/0.34 "
    "82.40/0.41 43.92/0.86 65.19/0.24 85.47/0.27 75.28/0.31 56.21/0.20",
    "CASCADE w/ NeuralLinUCB": "83.96/0.36 61.96/1.11 56.01/0.72 51.95/0.55 60.83/0.95 59.13/0.28 "
    "82.44/0.30 45.49/0.86 68.31/0.81 85.63/0.32 75.62/0.57 54.55/0.55",
}
_MULTI_TURN = {
    "ALFWorld": {"NP-CBR": 62.01, "CASCADE": 67.43},
    "ScienceWorld": {"NP-CBR": 59.36, "CASCADE": 66.84},
    "2Wiki": {"Zero-shot": 35.36, "NP-CBR": 45.94, "CASCADE": 50.06},
    "MIMIC-III": {"Zero-shot": 20.75, "NP-CBR": 44.02, "CASCADE": 55.76},
}
# The same with ReAct, which the paper compares in one sentence, and with web search.
_REACT = {"ALFWorld": {"CASCADE": 81.74}, "ScienceWorld": {"CASCADE": 74.67}}
_WEB = {"2Wiki": {"Zero-shot": 50.63, "NP-CBR": 53.29, "CASCADE": 66.51}}
_SAMPLING = {"temperature": 0.1, "top_p": 0.8, "top_k": 20, "presence_penalty": 1.5}
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
    "Neural-LinLogUCB without exploration": "CASCADE w/o exploration",
    "CASCADE": "CASCADE",
    "CASCADE, always a case": "CASCADE",
    "CASCADE without exploration": "CASCADE w/o exploration",
}
_NO_MEMORY = ("Zero-shot", "REINFORCE+LoRA")
_WITHOUT_RANKER = (*_NO_MEMORY, "ICRL", "ICRLPlus")
_MODEL, _SEARCHER = "qwen3-32b", "qwen3-30b-a3b"  # the second one only in 2Wiki
_EMBEDDER, _RERANKER = "gte-modernbert-base", "gte-reranker-modernbert-base"


def unlike(row: Row) -> list[str]:
    """Say what differs from the paper's experiment, as far as a row tells: who solved it, the data, the order, the models.

    >>> unlike({"task": "mud", "method": "zero-shot", "solver": "Qwen3-32B", "n": 1740, "order": "file"})
    []
    >>> unlike({"task": "mud", "method": "CASCADE", "solver": "mini", "n": 50})
    ['model mini', '50 of 1,740 tasks', 'shuffled', 'light features, no reranker', 'default embedder']
    """
    theirs = _METHODS.get(str(row["method"]).partition(" (")[0], "")
    models: dict[str, str] = json.loads(row.get("models") or "{}")
    options: dict[str, float] = json.loads(row.get("options") or "{}")
    return [
        *_of_the_solver(row),
        *_of_the_stream(row),
        *([] if theirs in _WITHOUT_RANKER else _other("reranker", models.get("ranker"), _RERANKER)),
        *([] if theirs in _WITHOUT_RANKER else _other("embedder", models.get("embedder"), _EMBEDDER)),
        *([f"k = {options['k']:g}"] if options.get("k", 1) != 1 else []),
    ]


def _of_the_solver(row: Row) -> list[str]:
    solver, wanted = str(row["solver"]), _SEARCHER if row["task"] == "2wiki" else _MODEL
    if _is_without_a_model(row):
        return ["no language model"]
    declared: dict[str, object] = dict(row.get("declared") or {})
    other = [name for name, value in _SAMPLING.items() if declared and declared.get(name) != value]
    judge = str(row.get("judged_by") or _JUDGE)
    return [
        *([] if wanted in solver.casefold() else [f"model {solver}"]),
        *(f"{name} {declared.get(name, 'of the server')}" for name in other),
        *([] if _JUDGE in judge else [f"judged by {judge}"]),
    ]


def _is_without_a_model(row: Row) -> bool:
    return str(row["solver"]).startswith(("simulated", "reuse"))


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


def reported(task: str, method: str, row: Row | None = None) -> tuple[str, str] | None:
    """Return the paper's name of a method and its figure on a task; None if the paper reports none.

    If the paper has several figures, the row decides: with or without thoughts, with local search or with a search server.

    >>> reported("banking77", "zero-shot")
    ('Zero-shot', '66.66 ± 0.03')
    >>> reported("alfworld", 'Neural-LinLogUCB {"alpha": 0.7}')
    ('CASCADE', '67.43')
    """
    entry, theirs = CATALOGUE.get(task), _METHODS.get(method.partition(" {")[0].partition(" (")[0])
    if entry is None or theirs is None:
        return None
    if entry.paper_name in _TASKS and theirs in _SINGLE_TURN:
        return theirs, _SINGLE_TURN[theirs].split()[_TASKS.index(entry.paper_name)].replace("/", " ± ")
    figure = _table_for(row or {}, entry.paper_name).get(entry.paper_name, {}).get(theirs)
    return None if figure is None else (theirs, f"{figure:.2f}")


def _table_for(row: Row, name: str) -> dict[str, dict[str, float]]:
    declared: dict[str, object] = dict(row.get("declared") or {})
    if not row or _is_without_a_model(row):
        return _MULTI_TURN
    if name in _REACT and declared.get("thinks", True):
        return _REACT
    if name in _WEB and not str(row.get("search") or "passages").startswith("passages"):
        return _WEB
    return _MULTI_TURN
