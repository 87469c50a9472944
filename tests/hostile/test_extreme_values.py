"""Every parameter of every public verb with every extreme value: refused with a sentence, or stored so that all else goes on.

Which of the calls are made is drawn by chance. With CASCADE_TESTS=matrix all are, in a minute.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import warnings
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from extreme_calls import LONGEST, drawn, some
from extreme_values import EXTREME, Hostile, HostileText, deep, endless
from inside import verb_of, verbs
from whole_memory import assert_whole

from cascade_memory import CascadeMemory, Ranking, Retention, Step, Tickets, Trajectory, Trust, WarningOptions
from cascade_memory.domain import plain_json, trajectory
from cascade_memory.errors import CascadeError, InvalidInput, StoreError
from cascade_memory.memory import curation

pytestmark = pytest.mark.fuzz

# They take no value to store, end the memory, take what only adapters pass, or write files of the caller's.
_LEFT_OUT = {
    *(
        "acting",
        "close",
        "inspect",
        "warm",
        "episodes.conclude",
        "episodes.end_run",
        "episodes.aend_run",
        "review.counting_again",
        "episodes.begin",
        "episodes.as_stored",
    ),
    *("data.sign_code", "data.redeem_code"),
}
_FLAGS = {"everything", "purge", "dry_run", "progress", "everywhere", "newest_first", "reported", "order", "self"}
_GIVEN: dict[str, Any] = {
    **{"query": "heat some egg", "solution": "microwave", "metadata": {"user": "ann"}, "source": "human", "sort": "newest"},
    **{"value": 0.5, "status": "ok", "older_than": timedelta(days=1), "since": 0, "advice": "microwave it", "search": "egg"},
    **{
        "actor": "ann",
        "thread_id": "t",
        "seen": "x",
        "id": "x",
        "trace_id": "0" * 32,
        "scores": [],
        "platform": "mine",
        "name": "a model",
        "action": "open",
        "warning_id": "w",
        "entry_id": "e",
    },
}


def _verbs() -> list[str]:
    return [name for name in verbs() if name not in _LEFT_OUT and not name.startswith("data.")]


def _calls() -> list[tuple[str, str, str]]:
    """Return (verb, parameter, value) of all calls."""
    return [
        (verb, parameter, label)
        for verb in _verbs()
        for parameter in inspect.signature(verbs()[verb]).parameters
        if parameter not in _FLAGS
        for label in EXTREME
    ]


def _arguments(memory: CascadeMemory, verb: str, parameter: str, value: object) -> dict[str, Any]:
    options: dict[str, Any] = {parameter: value}
    for name, one in inspect.signature(verb_of(memory, verb)).parameters.items():
        needed = one.default is one.empty or (verb == "add" and name in ("solution", "metadata"))
        needed |= verb in ("reward", "areward") and (name == "value" or (name == "episode_id" and parameter != "trace_id"))
        if name == parameter or not needed:
            continue
        if verb == "add" and parameter == "query" and not isinstance(value, str):
            continue  # many cases
        if name == "episode_id":
            options[name] = memory.recall("heat some egg", metadata={"user": "ann"}).episode_id
        else:
            options[name] = memory.add("heat some egg", "microwave") if name.startswith("case_id") else _GIVEN[name]
    return options


def _wrong(work: Callable[[], Any]) -> str | None:
    """Do something; return what is wrong with its answer, if anything."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = work()
            found = asyncio.run(found) if inspect.iscoroutine(found) else found
            if hasattr(found, "__next__"):
                found = list(itertools.islice(found, 3))
            if getattr(found, "error", None):
                return f"failed inside: {found.error[:200]}"
        except CascadeError as error:
            if isinstance(error, StoreError) or not 10 < len(str(error)) < LONGEST:
                return f"{type(error).__name__}: {str(error)[:200]}"
        except Exception as error:
            return f"{type(error).__name__} instead of a refusal"
    lost = [str(one.message)[:200] for one in warned if issubclass(one.category, RuntimeWarning)]
    return lost[0] if lost else None


def test_a_filter_is_checked_before_anything_is_asked_of_it(ram: CascadeMemory):
    for where in (Hostile(), {"k": Hostile()}, {"k": {"$in": [Hostile()]}}):
        with pytest.raises(InvalidInput, match=r"where|filter"):
            ram.recall("heat some egg", where=where)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"where|filter"):
            asyncio.run(ram.arecall("heat some egg", where=where))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [7])
def test_a_verb_refuses_an_extreme_value_or_stores_it_for_good(tmp_path: Path, seed: int):
    calls = _calls()
    assert len(calls) > 10_000
    with CascadeMemory(tmp_path / "m", embedder="hashing", deadline=30) as memory:
        memory.add("cool some egg", "fridge", metadata={"user": "ann"})
        found: dict[str, str] = {}
        for verb, parameter, label in drawn(calls, seed):
            options = _arguments(memory, verb, parameter, EXTREME[label])
            if wrong := _wrong(lambda verb=verb, options=options: verb_of(memory, verb)(**options)):
                found[f"{verb}({parameter}={label})"] = wrong
        assert found == {}
        assert_whole(memory, tmp_path)


_GROUPS = {"ranking": Ranking, "retention": Retention, "trust": Trust}
_OPTIONS = ["k", "namespace", "deadline", "warnings", *_GROUPS]
_OPTIONS += ["retain_at", "holdout", "explore", "candidates", "max_cases", "ttl", "min_trust", "tickets", "reward_caps"]
_OPTIONS += ["vigilance", "policy_scope", "abstain"]


@pytest.mark.parametrize("option", _OPTIONS)
def test_an_option_with_an_extreme_value_is_refused_or_works(option: str):
    group = next((name for name, kind in _GROUPS.items() if option in {field.name for field in fields(kind)}), None)

    def used(value: object) -> None:
        options: dict[str, Any] = {option: value} if group is None else {group: _GROUPS[group](**{option: value})}
        with CascadeMemory(embedder="hashing", learn="off", **options) as memory:
            memory.add("heat some egg", "microwave")
            assert memory.recall("heat an egg").error is None
            assert memory.health().failures == {}

    labels = some(list(EXTREME), 5, option)
    wrong = {label: _wrong(lambda label=label: used(EXTREME[label])) for label in labels}
    assert {label: why for label, why in wrong.items() if why} == {}


@pytest.mark.slow
@pytest.mark.parametrize("label", some(list(EXTREME), 30, "parts"))
def test_parts_of_solutions_and_settings_are_refused_or_come_back_as_they_were(label: str):
    value = EXTREME[label]
    fields = ("action", "observation", "thought", "tool", "failed", "arguments")
    steps: list[dict[str, Any]] = [
        *({"action": "a", name: value} for name in fields),
        {"action": "a", "arguments": {"x": value}},
    ]
    for given in steps if label != "endless" else steps[:5]:

        def kept(given: dict[str, Any] = given) -> None:
            there = Trajectory([Step(**given)])
            assert Trajectory.from_json(there.to_json()) == there

        assert _wrong(kept) is None
    assert _wrong(lambda: Tickets(lifetime=value)) is None
    assert _wrong(lambda: WarningOptions(keep=value)) is None
    assert _wrong(lambda: WarningOptions(per_episode=value)) is None


def test_what_has_no_end_is_not_read_to_its_end(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    for module, name in ((curation, "MOST_AT_ONCE"), (trajectory, "MOST_STEPS"), (plain_json, "MAX_NODES")):
        assert getattr(module, name) < 2_000_000
        monkeypatch.setattr(module, name, 1_000)
    for use in (
        lambda: ram.add(("q", "s") for _ in endless()),
        lambda: ram.forget(str(i) for i in endless()),
        lambda: ram.cases.bring_back(str(i) for i in endless()),
        lambda: Trajectory(Step(action="a") for _ in endless()),
        lambda: Step(action="a", arguments=EXTREME["endless"]),
    ):
        with pytest.raises(InvalidInput, match=r"at most|one call takes|leave out"):
            use()


def test_a_message_calls_no_method_of_what_it_refuses(ram: CascadeMemory):
    for refused in (Hostile(), HostileText("x" * 5_000_000), deep(100_000), {"a": Hostile()}):
        with pytest.raises(InvalidInput) as caught:
            ram.recall("task", k=refused)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 200
