"""Estimates, before a run with a language model, its requests and tokens, and how long models in this process will compute."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import KNOWN
from cascade_memory.evaluation.bench.names import REINFORCE
from cascade_memory.evaluation.bench.on_reranker import RERANKED
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import catalogued
from cascade_memory.evaluation.model.model_solver import messages_for
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.task import Item

PAPER_RANKER = 149_000_000  # parameters of gte-reranker-modernbert-base
_FORWARD = 2  # operations per parameter and token; a training step takes three times as many, which callers count as tokens
_SIDE = 1_024  # of the matrices whose product is timed
_MOST_HEAD = 100_000_000  # bytes of a file's list of tensors
_CHARS_PER_TOKEN = 2.5  # English has about 4; logs, SQL and Chinese have fewer
_REPLY = 200  # tokens of a reply
_LOOKED_AT = 200  # tasks whose prompts are measured
_JUDGED = 3  # requests to a judging model for each answer, at most
# Tasks in which a model acts: the most steps (thoughts have five of their own), the characters of the prompt at the start, and
# what each step adds to it.
_ACTED = {
    "alfworld": (35, 3_000, 400),
    "scienceworld": (35, 4_000, 500),
    "2wiki": (6, 1_500, 2_500),
    "mimic-iii": (5, 4_500, 1_500),
}
_QUERY = {"alfworld": 500, "scienceworld": 1_000, "2wiki": 100, "mimic-iii": 120}  # characters of a task
# A reranker reads each pair of tasks: 32 of them for a choice. A trained one also reads two pairs again for each task, and
# trains on one, which takes as long as to read it three times.
_PAIRS, _PAIRS_TRAINED = 32, 37
_MOST_PAIR = 2_048  # tokens
_FROZEN = ("NP-CBR", "LinLogUCB", "NeuralLogUCB")
# Training a language model on an answer: it writes it, reads it once without the adapters, and trains on it.
_GRADIENT = 5


def parameters_in(folder: Path) -> int:
    """Count the parameters of a model by the lists of tensors in its safetensors files; no weight is read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise InvalidInput(f"{folder} has no weights (*.safetensors)")
    return sum(math.prod(shape) for file in files for shape in _shapes(file))


def _shapes(file: Path) -> list[list[int]]:
    try:
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            listed: Mapping[str, Any] = json.loads(opened.read(size if size <= _MOST_HEAD else 0))
        return [cast("list[int]", about["shape"]) for name, about in listed.items() if name != "__metadata__"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{file} is not a safetensors file: {error}") from error


def operations_a_second() -> float:
    """Measure how many operations a second this machine does in the product of two matrices, on its GPU if it has one."""
    one = _matrix()
    float((one @ one).sum())  # the first product also starts threads and loads libraries
    best = math.inf
    for _ in range(5):
        began = time.perf_counter()
        float((one @ one).sum())
        best = min(best, time.perf_counter() - began)
    return 2 * _SIDE**3 / best


def _matrix() -> Any:
    try:
        import torch
    except ImportError:
        return np.random.default_rng(0).random((_SIDE, _SIDE), np.float32)
    if torch.cuda.is_available():
        with contextlib.suppress(RuntimeError):  # a server of language models may have filled it
            return torch.rand(_SIDE, _SIDE, device="cuda")
    return torch.rand(_SIDE, _SIDE)


def in_words(what: str, parameters: int, tokens: float, speed: float) -> str:
    """Say how long a model will take at least for so many tokens, of which those of training count three times.

    No model is as fast as the product of two large matrices, with which the speed is measured.

    >>> in_words("the reranker", 149_000_000, 3e9, 1e14)
    'the reranker: 149 million parameters, 3.0 billion tokens, 2.5 hours or more at 100,000 billion operations a second here'
    """
    hours = _FORWARD * parameters * tokens / speed / 3_600
    return (
        f"{what}: {parameters / 1e6:,.0f} million parameters, {tokens / 1e9:,.1f} billion tokens, {hours:,.1f} hours or more "
        f"at {speed / 1e9:,.0f} billion operations a second here"
    )


@dataclass(frozen=True, slots=True)
class Forecast:
    """The largest number of requests, and about how many tokens their prompts and replies have.

    ``ranked`` counts the tokens that a reranker reads, and ``trained`` those that a language model in this process reads; where
    they train, tokens count several times.
    """

    requests: int
    prompt_tokens: int
    reply_tokens: int
    ranked: int = 0
    trained: int = 0

    def __add__(self, other: Forecast) -> Forecast:
        return Forecast(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            self.ranked + other.ranked,
            self.trained + other.trained,
        )

    def sentence(self, runs: int, jobs: int) -> str:
        """Describe in one sentence the forecast for this number of runs in this number of parallel processes.

        >>> Forecast(7_200, 9_000_000, 1_440_000).sentence(6, jobs=2)
        '6 runs: at most 7,200 requests, about 9.0 million tokens of prompts and 1.4 of replies; 1.0 hours at 1 s a request'
        """
        hours = self.requests / 3_600 / max(1, min(jobs, runs))
        return (
            f"{runs:,} {'run' if runs == 1 else 'runs'}: at most {self.requests:,} requests, "
            f"about {self.prompt_tokens / 1e6:.1f} million tokens of prompts and {self.reply_tokens / 1e6:.1f} of replies; "
            f"{hours:.1f} hours at 1 s a request"
        )


def forecast(runs: Iterable[Run], data: Path, *, judged: bool = False) -> Forecast:
    """Add up the requests and tokens of runs; with ``judged``, a model also judges the answers of deep search."""
    total = Forecast(0, 0, 0)
    for run in runs:
        one = _acted(run, data) if run.task in _ACTED else _answered(run, data)
        tokens = one.prompt_tokens + one.reply_tokens
        learns = run.method == REINFORCE
        total += replace(one, ranked=_ranked(run, data), trained=_GRADIENT * tokens if learns else tokens)
        if judged and run.task == "2wiki":
            asked = _JUDGED * _count(run.task, run.limit, data)
            total += Forecast(asked, asked * 500, asked * 50)
    return total


def _ranked(run: Run, data: Path) -> int:
    """Estimate how many tokens a reranker reads in a run, if its method has one."""
    method = HUMAN[run.method].method if run.method in HUMAN else run.method
    if method not in RERANKED:
        return 0
    if run.task in _ACTED:
        tasks, query = _count(run.task, run.limit, data), float(_QUERY[run.task])
    else:
        tasks, _, _, query = _texts(run.task, run.limit, data)
    pair = min(_MOST_PAIR, 2 * query / _CHARS_PER_TOKEN)
    return round(tasks * pair * (_PAIRS if method in _FROZEN else _PAIRS_TRAINED))


def _acted(run: Run, data: Path) -> Forecast:
    steps, start, more = _ACTED[run.task]
    tasks = _count(run.task, run.limit, data)
    case = steps * more * _cases(run)
    chars = steps * (start + case) + more * steps * (steps - 1) // 2
    return Forecast(tasks * steps, round(tasks * chars / _CHARS_PER_TOKEN), tasks * steps * _REPLY)


def _answered(run: Run, data: Path) -> Forecast:
    tasks, prompt, case, _ = _texts(run.task, run.limit, data)
    tokens = (prompt + case * _cases(run)) / _CHARS_PER_TOKEN
    return Forecast(tasks, round(tasks * tokens), tasks * _REPLY)


@lru_cache(maxsize=32)
def _texts(name: str, limit: int | None, data: Path) -> tuple[int, float, float, float]:
    """Return the number of tasks and, in characters, the mean length of a prompt without cases, of a case and of a query."""
    task = catalogued(name)
    items = task.items(data)[:limit]
    some = items[:_LOOKED_AT]
    prompts = [sum(len(message["content"]) for message in messages_for(task, item, ())) for item in some]
    queries, solutions = (float(np.mean(list(map(len, texts)))) for texts in zip(*map(_both, some), strict=True))
    return len(items), float(np.mean(prompts)), queries + solutions, queries


def _both(item: Item) -> tuple[str, str]:
    return item.query, item.solution


def _count(name: str, limit: int | None, data: Path) -> int:
    """Count the tasks of a stream, at most ``limit``: the lines of its file or, without a file, as many as the paper has."""
    published = CATALOGUE[name].published
    samples = 0 if published is None else published.samples
    files: Sequence[str] = (*(published.files[:1] if published else ()), *CATALOGUE[name].files[:1])
    for file in files:
        if (data / file).is_file() and file.endswith(".jsonl"):
            with (data / file).open("rb") as lines:
                samples = sum(1 for line in lines if line.strip())
            break
    return samples if limit is None else min(limit, samples)


def _cases(run: Run) -> int:
    """Return how many cases a prompt of this run shows."""
    method = HUMAN[run.method].method if run.method in HUMAN else run.method
    options = KNOWN.get(method)
    return 0 if options is None else int(json.loads(run.options or "{}").get("k", options.get("k", 1)))
