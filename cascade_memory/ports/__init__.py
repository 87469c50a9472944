"""Protocols for everything that can be replaced. To extend the library, pass an object; no name needs to be registered."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.ports.case_index import CaseIndex
    from cascade_memory.ports.case_mirror import CaseMirror
    from cascade_memory.ports.embedder import Embedder, LoadsModel
    from cascade_memory.ports.judged import Judged
    from cascade_memory.ports.pair_encoder import Candidates, Pair, PairEncoder, Query, TrainableEncoder
    from cascade_memory.ports.policy import Choice, Feedback, MayAbstain, Policy, SaysWhatItLearned, Slate, Taught
    from cascade_memory.ports.solution_matcher import SolutionMatcher

__all__ = [
    "Candidates",
    "CaseIndex",
    "CaseMirror",
    "Choice",
    "Embedder",
    "Feedback",
    "LoadsModel",
    "MayAbstain",
    "Pair",
    "PairEncoder",
    "Policy",
    "Query",
    "SaysWhatItLearned",
    "Slate",
    "SolutionMatcher",
    "Taught",
    "TrainableEncoder",
]

# The benchmark and the contract tests use the names as well that are not in __all__.
__getattr__, __dir__ = door(
    __name__,
    {
        "case_index": "CaseIndex",
        "case_mirror": "CaseMirror",
        "embedder": "Embedder LoadsModel",
        "judged": "Judged",
        "pair_encoder": "Candidates Pair PairEncoder Query TrainableEncoder",
        "policy": "Choice Feedback MayAbstain Policy SaysWhatItLearned Slate Taught",
        "solution_matcher": "SolutionMatcher",
    },
)
