"""The terms of the library as plain, immutable values, which all other packages may use."""

# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.domain.actions import AuditEntry, NewAction, check_actor, login_name
    from cascade_memory.domain.case import CaseText
    from cascade_memory.domain.digests import Signed, Times, digest, is_key, pair_key, read, sign
    from cascade_memory.domain.display import counted, no_namespace, number
    from cascade_memory.domain.episode import SOURCES, STATUSES, Status
    from cascade_memory.domain.explanation import Candidate
    from cascade_memory.domain.limits import MOST_REPORTED_BYTES
    from cascade_memory.domain.private_files import append_after, check_one_name, open_own, open_plain
    from cascade_memory.domain.provenance import Wanted
    from cascade_memory.domain.records import (
        CASE_ADDED,
        CASE_REMOVED,
        CLOSED,
        SETTLED,
        Column,
        NewCase,
        Opinion,
        RecallRecord,
        Settled,
        Settlement,
    )
    from cascade_memory.domain.sqlite_files import connect, connected
    from cascade_memory.domain.trajectory import Solution, capped, solution_text
    from cascade_memory.domain.trust import OFF, Vigilance, named
    from cascade_memory.domain.validation import (
        MAX_SOLUTION_CHARS,
        check_namespace,
        check_query,
        check_reward,
        check_text,
        check_whole,
    )
    from cascade_memory.domain.viewed import CaseOrder, JudgedEpisode, RecordedCandidate, RecordedRecall, Sort, State

# The names that the benchmark, the contract tests and the inspector use. A module is imported at the first use of its names.
__getattr__, __dir__ = door(
    __name__,
    {
        "actions": "AuditEntry NewAction check_actor login_name",
        "case": "CaseText",
        "digests": "Signed Times digest is_key pair_key read sign",
        "display": "counted no_namespace number",
        "episode": "SOURCES STATUSES Status",
        "explanation": "Candidate",
        "limits": "MOST_REPORTED_BYTES",
        "private_files": "append_after check_one_name open_own open_plain",
        "provenance": "Wanted",
        "records": "CASE_ADDED CASE_REMOVED CLOSED SETTLED Column NewCase Opinion RecallRecord Settled Settlement",
        "sqlite_files": "connect connected",
        "trajectory": "Solution capped solution_text",
        "trust": "OFF Vigilance named",
        "validation": "MAX_SOLUTION_CHARS check_namespace check_query check_reward check_text check_whole",
        "viewed": "CaseOrder JudgedEpisode RecordedCandidate RecordedRecall Sort State",
    },
)
