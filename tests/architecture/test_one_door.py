"""All texts come in by one door, and nobody speaks but through the library's own log: who adds a way in must use them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from inside import parts_of_ledger

import cascade_memory
from cascade_memory.capabilities import CAPABILITIES
from cascade_memory.domain.records import NewCase, RecallRecord, Settlement
from cascade_memory.engine.request import Judgement, RecallRequest
from cascade_memory.ledger.core import Ledger

ROOT = Path(cascade_memory.__file__).parent
DOOR = "engine/door.py"
_ELSEWHERE = ("evaluation/", "testing/")

# Whatever writes to a ledger, and who calls it. What takes texts gets them from the door: say here how, when you add to it.
WRITES = {
    "record": {"engine/recording.py": "a RecallRequest"},
    "settle": {"engine/engine.py": "a Judgement, which carries the record it came in by"},
    "cases.add": {"memory/curation.py": "checked"},
    "cases.evict": {"engine/namespace_state.py": "no text"},
    "actions.flag": {"memory/cases.py": "no text"},
    "actions.replace": {"capabilities/review/verbs.py": "correct"},
    "actions.undo": {"capabilities/review/verbs.py": "no text", "capabilities/scores/acting.py": "no text"},
    "archive.load": {"memory/transfer.py": "cleaned"},
    "archive.copy_to": {"memory/backup.py": "a copy"},
    "episodes.finish": {"memory/ending.py": "finish"},
    "forgetting.forget_source": {"memory/curation.py": "outcomes that count again, each made of a Judgement"},
    "episodes.close": {"memory/episodes.py": "no text", "memory/ending.py": "no text"},
    "warnings.decide": {
        "capabilities/warnings/verbs.py": "advise",
        "capabilities/warnings/engine_part.py": "what distil wrote",
    },
    "warnings.note_check": {"capabilities/warnings/engine_part.py": "no text"},
    "warnings.keep_newest": {"capabilities/warnings/engine_part.py": "no text"},
}
_OF_TEXTS = {"check_query", "check_solution", "check_metadata", "check_note"}
_MAY_CHECK = {
    DOOR,
    "domain/__init__.py",  # it offers a check to the benchmark
    "memory/ending.py",  # end: reward_fn judges what the agent really said, before it comes in
    "cycle/retain.py",  # the result of case_text, which the door has wrapped
    "llama_index/retriever.py",  # early, for the error: what it passes to recall comes in by the door
    "ledger/transfer.py",  # once more, since a ledger trusts nobody
    "ledger/audit.py",
    "ledger/transfer_parts.py",
    "ledger/rules.py",
}


@cache
def _ours() -> dict[str, ast.Module]:
    """Return the parsed files, once: not at import, since every process that collects tests imports this."""
    names = {file.relative_to(ROOT).as_posix(): file for file in sorted(ROOT.rglob("*.py"))}
    return {
        name: ast.parse(file.read_text()) for name, file in names.items() if not name.startswith(("evaluation/", "testing/"))
    }


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _dotted(node: ast.expr) -> str:
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "?")


@cache
def _called() -> dict[str, list[str]]:
    return {name: [_dotted(one.func) for one in _calls(tree)] for name, tree in _ours().items()}


def _callers(method: str) -> set[str]:
    """Return the files that call a method of the ledger, such as ``cases.add``; by the ledger's name or that of its part."""
    noun, _, verb = method.partition(".")
    ends = (f".rows.{verb}",) if noun in CAPABILITIES else (f".ledger.{method}", f"._ledger.{method}")
    return {
        name
        for name, calls in _called().items()
        if not name.startswith("ledger/") and any(f".{one}".endswith(ends) for one in calls)
    }


@pytest.mark.slow
def test_texts_are_checked_at_the_door_alone():
    found = {
        name
        for name, tree in _ours().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and {one.name for one in node.names} & _OF_TEXTS
    }
    assert found <= _MAY_CHECK, f"take texts in by {DOOR} instead: {sorted(found - _MAY_CHECK)}"


def test_every_way_to_write_is_known():
    for method, known in WRITES.items():
        assert _callers(method) == set(known), method


def test_no_part_of_the_ledger_has_a_new_way_to_store_texts():
    """A method that takes texts of users must be in the table above, or among those that only read, delete or move."""
    stores = {
        f"{part}.{name}"
        for part, kind in parts_of_ledger().items()
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and _takes_texts(method)
    }
    assert stores <= {
        "cases.add",
        "actions.replace",
        "archive.load",
        "episodes.finish",
        "forgetting.forget_source",
    }, stores
    assert {name for name, method in inspect.getmembers(Ledger, inspect.isfunction) if _takes_texts(method)} <= {
        "record",
        "settle",
    }


def _takes_texts(method: object) -> bool:
    hints = {name: str(hint) for name, hint in inspect.get_annotations(method).items() if name != "return"}  # type: ignore[arg-type]
    words = ("NewCase", "RecallRecord", "Settlement", "Solution |", "dict[", "WarningDecision")
    return any(word in hint for hint in hints.values() for word in words)


def test_what_carries_texts_inwards_is_made_in_few_places():
    made: dict[str, set[str]] = {}
    for name, calls in _called().items():
        for one in calls:
            made.setdefault(one.rpartition(".")[2], set()).add(name)
    assert made[RecallRequest.__name__] == {"memory/bound.py"}
    again = {name for name, calls in _called().items() if "Judgement.again" in calls}  # of an outcome that counted before
    judging = made[Judgement.__name__] | again
    assert judging == {"memory/bound.py", "capabilities/review/verbs.py", "capabilities/scores/acting.py"}
    assert made[RecallRecord.__name__] == {"engine/decision.py", "engine/recording.py"}
    assert made[Settlement.__name__] == {"engine/settling.py"}
    assert made[NewCase.__name__] == {"cycle/retain.py"}
    assert made["new_case"] == {"cycle/retain.py", "memory/curation.py", "capabilities/review/verbs.py"}


def test_loggers_and_warnings_come_from_one_place():
    spoken = {"logging.getLogger", "getLogger", "warnings.warn"}
    speaking = {name for name, calls in _called().items() if spoken & set(calls)}
    assert speaking == {"redaction/saying.py"}
