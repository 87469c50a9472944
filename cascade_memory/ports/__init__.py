"""What a part must be able to do to be plugged in. Extend by passing an object, not by registering a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.ports.case_index import CaseIndex
    from cascade_memory.ports.case_mirror import CaseMirror
    from cascade_memory.ports.embedder import Embedder, LoadsModel
    from cascade_memory.ports.ledger import Ledger
    from cascade_memory.ports.pair_encoder import Candidates, Pair, PairEncoder, Query, TrainableEncoder
    from cascade_memory.ports.policy import Choice, Feedback, MayAbstain, Policy, Slate
    from cascade_memory.ports.solution_matcher import SolutionMatcher

__all__ = [
    "Candidates",
    "CaseIndex",
    "CaseMirror",
    "Choice",
    "Embedder",
    "Feedback",
    "Ledger",
    "LoadsModel",
    "MayAbstain",
    "Pair",
    "PairEncoder",
    "Policy",
    "Query",
    "Slate",
    "SolutionMatcher",
    "TrainableEncoder",
]

_HOMES = {
    "Candidates": "pair_encoder",
    "CaseIndex": "case_index",
    "CaseMirror": "case_mirror",
    "Choice": "policy",
    "Embedder": "embedder",
    "Feedback": "policy",
    "Ledger": "ledger",
    "LoadsModel": "embedder",
    "MayAbstain": "policy",
    "Pair": "pair_encoder",
    "PairEncoder": "pair_encoder",
    "Policy": "policy",
    "Query": "pair_encoder",
    "Slate": "policy",
    "SolutionMatcher": "solution_matcher",
    "TrainableEncoder": "pair_encoder",
}


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
