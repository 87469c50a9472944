"""How long the models in this process will compute: from their parameters, the tokens they read, and this machine's speed."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from cascade_memory.errors import InvalidInput

PAPER_RANKER = 149_000_000  # parameters of gte-reranker-modernbert-base
_FORWARD = 2  # operations per parameter and token; a training step takes three times as many, which callers count as tokens
_SIDE = 1_024  # of the matrices whose product is timed
_MOST_HEAD = 100_000_000  # bytes of a file's list of tensors


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
