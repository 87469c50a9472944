"""The built-in rankers and their parts: ``CascadeMemory(ranker=rankers.light(exploration=...))``."""

from __future__ import annotations

from cascade_memory.assembly.rankers import (
    START,
    cross_encoder,
    latest,
    light,
    linlogucb,
    neural_linlogucb,
    neural_linucb,
    neural_logucb,
    similarity,
    thompson,
    uniform,
    untrained,
    zero_shot,
)
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.neural_bandit import Schedule

__all__ = [
    "START",
    "Schedule",
    "UpperConfidence",
    "cross_encoder",
    "latest",
    "light",
    "linlogucb",
    "neural_linlogucb",
    "neural_linucb",
    "neural_logucb",
    "similarity",
    "thompson",
    "uniform",
    "untrained",
    "zero_shot",
]
