"""A capability can hold candidates back: others take their places, and the explanation says which, and why."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.cycle.recall import Recalled
from cascade_memory.engine import engine
from cascade_memory.engine.part import EnginePart, Masked


def masking(word: str) -> SimpleNamespace:
    """Make a module of a capability that holds back all cases with a word in their task."""

    class Part(EnginePart):
        def mask(self, state: Any, found: Recalled, asker: str | None, episode_id: str | None) -> Masked | None:
            held = np.array([word in text for text in found.candidates.texts], bool)
            return Masked(held, lambda place: f"it is about a {word}") if held.any() else None

    return SimpleNamespace(PART=Part)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CascadeMemory]:
    """Open a memory whose capabilities hold back cases with these words, beside those of the library."""

    def of(*words: str) -> CascadeMemory:
        real = engine.capabilities.parts
        more = tuple(map(masking, words))
        monkeypatch.setattr(engine.capabilities, "parts", lambda name: real(name) + (more if name == "engine_part" else ()))
        return CascadeMemory(embedder="hashing", ranking=Ranking(abstain=False))

    return of


def test_the_next_nearest_case_is_shown_in_its_place(opened: Callable[..., CascadeMemory]):
    with opened("fridge") as memory:
        for thing in ("fridge", "freezer"):
            memory.add(f"cool the mug in the {thing}", f"open the {thing}")
        recall = memory.recall("cool the mug in the fridge")
        assert [case.solution for case in recall.cases] == ["open the freezer"]
        (held,) = recall.explain().held
        assert (held.actor, held.why, round(held.similarity)) == (None, "it is about a fridge", 1)
        assert "held back in this episode: 1 case, it is about a fridge" in str(recall.explain())
        assert [case.solution for case in memory.cases.search("cool the mug in the fridge", k=2).cases] == ["open the freezer"]


def test_a_crowd_that_is_held_back_hides_nobody(opened: Callable[..., CascadeMemory]):
    with opened("fridge") as memory:
        memory.add([(f"cool the mug in the fridge {number}", f"shelf {number}") for number in range(60)])
        memory.add("cool a mug", "open the freezer")
        assert [case.solution for case in memory.recall("cool the mug in the fridge").cases] == ["open the freezer"]


def test_what_one_of_two_capabilities_holds_back_is_not_shown(opened: Callable[..., CascadeMemory]):
    with opened("fridge", "mug") as memory:
        for thing in ("mug", "pan", "mug in the fridge", "pan in the fridge"):
            memory.add(f"cool the {thing}", thing)
        recall = memory.recall("cool the mug in the fridge")
        assert [case.solution for case in recall.cases] == ["pan"]
        assert [held.why for held in recall.explain().held] == [
            "it is about a fridge",  # the first capability that holds a case back says why
            "it is about a fridge",
            "it is about a mug",
        ]


def test_where_all_cases_are_held_back_none_is_shown_and_the_explanation_says_so(opened: Callable[..., CascadeMemory]):
    with opened("mug") as memory:
        memory.add("cool the mug", "open the fridge")
        recall = memory.recall("cool the mug")
        assert recall.cases == ()
        assert "all cases that were found are held back" in str(recall.explain())
