"""The learning algorithms: numpy arrays in, numpy arrays out. This package handles no texts, cases or files."""

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.bandit.credit import credit_all
    from cascade_memory.bandit.exploration import UpperConfidence, context_of
    from cascade_memory.bandit.intervals import Interval
    from cascade_memory.bandit.light import LightPolicy
    from cascade_memory.bandit.neural_bandit import Schedule
    from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
    from cascade_memory.bandit.neural_logucb import NeuralLogUCB
    from cascade_memory.bandit.off_policy import Estimates, Logged, estimate
    from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
    from cascade_memory.bandit.similarity import FrozenHead, SimilarityPolicy, UniformPolicy, best_first, plain_choice

__all__ = [
    "Estimates",
    "FrozenHead",
    "Interval",
    "LightPolicy",
    "LinLogUCB",
    "Logged",
    "NeuralLinLogUCB",
    "NeuralLinUCB",
    "NeuralLogUCB",
    "Schedule",
    "SimilarityPolicy",
    "ThompsonSampling",
    "UniformPolicy",
    "UpperConfidence",
    "best_first",
    "context_of",
    "credit_all",
    "estimate",
    "plain_choice",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "credit": "credit_all",
        "exploration": "UpperConfidence context_of",
        "intervals": "Interval",
        "light": "LightPolicy",
        "neural_bandit": "Schedule",
        "neural_linlogucb": "NeuralLinLogUCB",
        "neural_logucb": "NeuralLogUCB",
        "off_policy": "Estimates Logged estimate",
        "rivals": "LinLogUCB NeuralLinUCB ThompsonSampling",
        "similarity": "FrozenHead SimilarityPolicy UniformPolicy best_first plain_choice",
    },
)
