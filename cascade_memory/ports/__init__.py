"""Protocols for everything that can be replaced. To extend the library, pass an object; no name needs to be registered."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.ports.case_index import CaseIndex
    from cascade_memory.ports.case_mirror import CaseMirror
    from cascade_memory.ports.embedder import Embedder, LoadsModel
    from cascade_memory.ports.judged import Judged
    from cascade_memory.ports.ledger import Ledger
    from cascade_memory.ports.ledger_archive import Archive
    from cascade_memory.ports.ledger_cases import Cases
    from cascade_memory.ports.ledger_episodes import Episodes
    from cascade_memory.ports.ledger_expiry import Expiry
    from cascade_memory.ports.ledger_facts import Facts
    from cascade_memory.ports.ledger_forgetting import Forgetting
    from cascade_memory.ports.ledger_insight import Insight
    from cascade_memory.ports.ledger_lessons import Lessons
    from cascade_memory.ports.ledger_maintenance import Maintenance
    from cascade_memory.ports.pair_encoder import Candidates, Pair, PairEncoder, Query, TrainableEncoder
    from cascade_memory.ports.policy import Choice, Feedback, MayAbstain, Policy, SaysWhatItLearned, Slate, Taught
    from cascade_memory.ports.solution_matcher import SolutionMatcher

__all__ = [
    "Archive",
    "Candidates",
    "CaseIndex",
    "CaseMirror",
    "Cases",
    "Choice",
    "Embedder",
    "Episodes",
    "Expiry",
    "Facts",
    "Feedback",
    "Forgetting",
    "Insight",
    "Ledger",
    "Lessons",
    "LoadsModel",
    "Maintenance",
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

_HOMES = {
    "Archive": "ledger_archive",
    "Candidates": "pair_encoder",
    "CaseIndex": "case_index",
    "CaseMirror": "case_mirror",
    "Cases": "ledger_cases",
    "Choice": "policy",
    "Embedder": "embedder",
    "Episodes": "ledger_episodes",
    "Expiry": "ledger_expiry",
    "Facts": "ledger_facts",
    "Feedback": "policy",
    "Forgetting": "ledger_forgetting",
    "Insight": "ledger_insight",
    "Judged": "judged",
    "Ledger": "ledger",
    "Lessons": "ledger_lessons",
    "LoadsModel": "embedder",
    "Maintenance": "ledger_maintenance",
    "MayAbstain": "policy",
    "Pair": "pair_encoder",
    "PairEncoder": "pair_encoder",
    "Policy": "policy",
    "Query": "pair_encoder",
    "SaysWhatItLearned": "policy",
    "Slate": "policy",
    "SolutionMatcher": "solution_matcher",
    "Taught": "policy",
    "TrainableEncoder": "pair_encoder",
}


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
