"""Protocols for everything that can be replaced. To extend the library, pass an object; no name needs to be registered."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.ports.case_index import CaseIndex, CaseMirror
    from cascade_memory.ports.encoders import (
        Candidates,
        Embedder,
        LoadsModel,
        Pair,
        PairEncoder,
        Query,
        SolutionMatcher,
        TrainableEncoder,
    )
    from cascade_memory.ports.policy import Choice, Feedback, Judged, MayAbstain, Policy, SaysWhatItLearned, Slate, Taught

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
        "case_index": "CaseIndex CaseMirror",
        "encoders": "Candidates Embedder LoadsModel Pair PairEncoder Query SolutionMatcher TrainableEncoder",
        "policy": "Choice Feedback Judged MayAbstain Policy SaysWhatItLearned Slate Taught",
    },
)
