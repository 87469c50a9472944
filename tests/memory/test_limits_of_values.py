"""The greatest value of each kind that a caller may pass is stored, moved and read back; the next one is refused."""

from __future__ import annotations

import importlib.util
import inspect
import math
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from inside import verb_of, verbs

from cascade_memory import CascadeMemory, Retention, Step, restore
from cascade_memory.domain import validation
from cascade_memory.domain.actions import NOTE_CHARS
from cascade_memory.domain.metadata import MAX_METADATA_BYTES, MAX_METADATA_VALUES, STORED_AT_MOST
from cascade_memory.domain.plain_json import MAX_DEPTH
from cascade_memory.domain.validation import (
    ADVICE_CHARS,
    FIRST_MOMENT,
    GREATEST,
    LAST_MOMENT,
    LONGEST,
    MAX_ID_CHARS,
    MAX_NAMESPACE_CHARS,
    MAX_QUERY_CHARS,
    MAX_SOLUTION_CHARS,
)
from cascade_memory.errors import (
    CascadeError,
    ContentChanged,
    InvalidInput,
    UndoRefused,
    UnknownCase,
    UnknownEpisode,
    UnknownWarning,
)
from cascade_memory.ledger import declaring, rules, schema


def _nested(depth: int) -> list[Step]:
    inside: Any = 1
    for _ in range(depth):
        inside = [inside]
    return [Step(action="a", arguments={"a": inside})]


def _long(size: int) -> dict[str, str]:
    return {"k": "x" * (size - 1)}


def _many(count: int) -> dict[str, Any]:
    return {"k": [*range(count - 1)], "one": True}


class Limit(NamedTuple):
    """A parameter, the greatest value that it takes, and one that is too great."""

    parameter: str
    greatest: Any
    beyond: Any


_TEXTS = {"query": MAX_QUERY_CHARS, "namespace": MAX_NAMESPACE_CHARS, "note": NOTE_CHARS, "advice": ADVICE_CHARS}
_TEXTS |= dict.fromkeys(
    ("episode_id", "case_id", "thread_id", "confirms", "seen", "id", "entry_id", "warning_id"), MAX_ID_CHARS
)
_COUNTS = [(GREATEST, GREATEST + 1), (1, 0)]
_SHARES = [(1, math.nextafter(1, 2)), (0, math.nextafter(0, -1))]
_MOMENTS = [(LAST_MOMENT, LAST_MOMENT + 1), (FIRST_MOMENT, FIRST_MOMENT - 1), (0, -(10**400))]
_NUMBERS = {
    **{"k": _COUNTS, "limit": _COUNTS, "window": _COUNTS, "value": _SHARES, "rate": _SHARES},
    **{"since": _MOMENTS, "until": _MOMENTS},
    "older_than": [(LONGEST, math.nextafter(LONGEST, math.inf)), (timedelta(days=36_525), timedelta.max), (0, -1)],
}
_METADATA = [
    (_many(MAX_METADATA_VALUES), _many(MAX_METADATA_VALUES + 1)),
    (_long(MAX_METADATA_BYTES), _long(MAX_METADATA_BYTES + 1)),
    ({"k" * MAX_ID_CHARS: 2**63 - 1}, {"k" * (MAX_ID_CHARS + 1): 1}),
    ({"k": -(2**63), "f": -1.7e308}, {"k": 2**63}),
]
_SOLUTIONS = [
    ("x" * MAX_SOLUTION_CHARS, "x" * (MAX_SOLUTION_CHARS + 1)),
    (lambda: _nested(MAX_DEPTH), lambda: _nested(MAX_DEPTH + 1)),
]
_FILTERS = [
    ({"k": {"$in": [*range(10_000)]}}, {"k": {"$in": [*range(10_001)]}}),
    ({f"k{i}": 1 for i in range(200)}, {f"k{i}": 1 for i in range(201)}),
]
_LIMITS = [
    *(Limit(name, "x" * most, "x" * (most + 1)) for name, most in _TEXTS.items()),
    *(Limit(name, *pair) for name, pairs in _NUMBERS.items() for pair in pairs),
    *(Limit("metadata", *pair) for pair in _METADATA),
    *(Limit("solution", *pair) for pair in _SOLUTIONS),
    *(Limit("where", *pair) for pair in _FILTERS),
]
_OF_ADAPTERS = {
    *(
        "data.sign_code",
        "data.redeem_code",
        "episodes.conclude",
        "episodes.end_run",
        "episodes.aend_run",
        "review.counting_again",
        "episodes.begin",
        "episodes.as_stored",
        "data.note_failure",
    ),
}
_REPEATED = {"arecall", "areward", "aend", "warnings.acheck"}  # the same checks, on another thread


def _taking(parameter: str) -> list[str]:
    functions = {name: one for name, one in verbs().items() if name not in _OF_ADAPTERS | _REPEATED}
    if importlib.util.find_spec("starlette") is None:
        del functions["inspect"]
    return [name for name, one in functions.items() if parameter in inspect.signature(one).parameters]


def _options(memory: CascadeMemory, verb: str, parameter: str) -> dict[str, Any]:
    """Return what else a verb needs."""
    needed: dict[str, Callable[[], Any]] = {
        "query": lambda: f"task {time.time()}",
        "solution": lambda: "solution",
        "episode_id": lambda: memory.recall("task").episode_id,
        "case_id": lambda: memory.add("task", "solution"),
        "value": lambda: 0.0,
        "seen": lambda: "seen",
        "actor": lambda: "ann",
        "id": lambda: memory.add("task", "solution"),
        "older_than": lambda: LONGEST,
        "since": lambda: 0.0,
        "warning_id": lambda: "w",
        "advice": lambda: "advice",
        "thread_id": lambda: "thread",
        "entry_id": lambda: "entry",
        "sort": lambda: "newest",
        "source": lambda: "human",
        "scores": list,
        "platform": lambda: "phoenix",
        "name": lambda: "a model",
        "trace_id": lambda: "0" * 32,
    }
    parameters = inspect.signature(verb_of(memory, verb)).parameters
    missing = [name for name, one in parameters.items() if one.default is one.empty and name != parameter]
    return {name: needed[name]() for name in [*missing, *(["solution"] if verb == "add" and parameter != "solution" else [])]}


_UNKNOWN = (UndoRefused, UnknownCase, UnknownEpisode, UnknownWarning, ContentChanged)  # there is none with so long an id


def _refusal(memory: CascadeMemory, verb: str, limit: Limit, value: Any) -> CascadeError | None:
    try:
        value = value() if callable(value) else value
        found = verb_of(memory, verb)(**_options(memory, verb, limit.parameter), **{limit.parameter: value})
        if hasattr(found, "__next__"):
            list(found)
    except CascadeError as refused:
        return refused
    assert getattr(found, "error", None) is None
    return None


def _filled(memory: CascadeMemory) -> None:
    """Give every verb the greatest values that it takes, and those that are too great."""
    for limit in _LIMITS:
        for verb in _taking(limit.parameter):
            if limit.parameter == "where" and verb == "forget":
                continue  # it would take away what the others have stored
            refused = _refusal(memory, verb, limit, limit.greatest)
            assert not isinstance(refused, InvalidInput) or limit.parameter not in str(refused), (verb, limit.parameter)
            refused = _refusal(memory, verb, limit, limit.beyond)
            assert isinstance(refused, (InvalidInput, *_UNKNOWN)), (verb, limit.parameter)
    assert memory.health().failures == {}
    _fine(memory)


def _fine(memory: CascadeMemory) -> None:
    assert [check for check in memory.data.examine() if not check.ok] == []


@pytest.mark.slow
def test_the_greatest_values_are_stored_and_exported_and_the_next_ones_refused(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=60) as memory:
        _filled(memory)
        memory.data.export(tmp_path / "export")
    with CascadeMemory(tmp_path / "new", embedder="hashing") as other:
        other.data.import_(tmp_path / "export")
        _fine(other)


@pytest.mark.slow
def test_the_greatest_values_are_in_a_backup(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=60) as memory:
        _filled(memory)
        memory.data.backup(tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with CascadeMemory(tmp_path / "restored", embedder="hashing") as restored:
        _fine(restored)


def test_each_number_that_a_verb_takes_has_its_limit_here():
    numbers = {
        name
        for verb, function in verbs().items()
        if verb not in _OF_ADAPTERS
        for name, one in inspect.signature(function).parameters.items()
        if {"int", "float", "timedelta", "Moment"} & set(str(one.annotation).replace("|", " ").split())
    }
    assert numbers - {"port"} == set(_NUMBERS)


def test_rows_are_checked_by_the_functions_that_check_arguments():
    for name in ("check_moment", "check_share", "check_id"):
        assert getattr(schema, name) is getattr(validation, name)
    for name in ("check_whole", "check_number", "check_word"):
        assert getattr(declaring, name) is getattr(validation, name)
    for name in ("check_text", "check_query", "check_namespace"):
        assert getattr(rules, name) is getattr(validation, name)


def test_the_metadata_of_an_episode_are_limited_together(ram: CascadeMemory):
    episode = ram.recall("task", metadata=_many(MAX_METADATA_VALUES)).episode_id
    assert ram.recall("task", episode_id=episode, metadata={"one": False}).error is None  # in the place of another value
    with pytest.raises(InvalidInput, match="all recalls of this episode"):
        ram.recall("task", episode_id=episode, metadata={"another": 1})
    case_id = ram.reward(episode, 1.0, solution="s", metadata=_long(MAX_METADATA_BYTES))
    assert len(ram.cases.get(str(case_id)).metadata["k"]) == MAX_METADATA_BYTES - 1


def test_a_case_has_the_metadata_of_its_recall_and_of_its_reward_and_can_be_imported(ram: CascadeMemory, tmp_path: Path):
    with CascadeMemory(embedder="hashing", retention=Retention(retain_at=0.0)) as memory:
        recalled, rewarded = {f"a{i:03}": i for i in range(1_000)}, {f"b{i:03}": i for i in range(1_000)}
        case_id = memory.reward(memory.recall("task", metadata=recalled).episode_id, 0.1, solution="s", metadata=rewarded)
        assert len(memory.cases.get(str(case_id)).metadata) == 2_001  # and that it was not solved
        memory.data.export(tmp_path / "export")
    assert ram.data.import_(tmp_path / "export")
    assert ram.cases.get(str(case_id)).metadata["b999"] == 999


def test_more_metadata_than_a_case_can_have_are_not_imported(ram: CascadeMemory, tmp_path: Path):
    ram.add("task", "solution", metadata={"k": "x" * 100})
    ram.data.export(tmp_path / "export")
    long = (tmp_path / "export").read_text().replace("x" * 100, "x" * (STORED_AT_MOST * MAX_METADATA_BYTES))
    with CascadeMemory(embedder="hashing") as other, pytest.raises(InvalidInput, match=r"line 2.*bytes.*nothing was imported"):
        other.data.import_(long.splitlines())


@pytest.mark.slow
def test_what_an_older_version_stored_beyond_the_limits_is_still_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as older:
        older.setattr("cascade_memory.domain.metadata.MAX_METADATA_BYTES", 10**9)
        older.setattr("cascade_memory.domain.metadata.MAX_METADATA_VALUES", 10**9)
        with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
            case_id = memory.add("task", "solution", metadata={**_long(900_000), "n": [*range(5_000)]})
            episode = memory.recall("task", metadata=_long(900_000)).episode_id
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        assert [check for check in memory.data.examine() if not check.ok] == []
        assert memory.cases.search("task", where=_long(900_000)).cases[0].id == case_id
        assert memory.reward(episode, 1.0, solution="other")
        assert memory.data.backup(tmp_path / "backup")["cases"] == 2
        assert memory.forget(where=_long(900_000)).cases == 2


def test_a_count_that_is_as_great_as_it_may_be_stays_so(ram: CascadeMemory, tmp_path: Path):
    ram.add("task", "solution")
    ram.data.export(tmp_path / "export")
    text = (tmp_path / "export").read_text().replace('"copies": 1', f'"copies": {GREATEST}')
    text = text.replace('"shown": 0', f'"shown": {GREATEST}', 1)
    with CascadeMemory(tmp_path / "m", embedder="hashing") as other:
        other.data.import_(text.splitlines())
        case_id = other.add("task", "solution")
        other.reward(other.recall("task").episode_id, 1.0, solution="solution")
        assert (other.cases.get(case_id).copies, other.cases.get(case_id).shown) == (GREATEST, GREATEST)
        assert other.data.backup(tmp_path / "backup")["cases"] == 1
