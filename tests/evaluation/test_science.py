"""Reusing experiments: words mapped from task to task, deeds read from trajectories, and the real world where Java is there."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.environments import scienceworld_tasks
from cascade_memory.evaluation.environments.scienceworld import LIMITS, Place, ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask, places, science_tasks
from cascade_memory.evaluation.reuse import scienceworld
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.reuse.phrases import mapped_phrases, substituted
from cascade_memory.evaluation.reuse.scienceworld import Experiment, ScienceAgent, deeds

with_world = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None or shutil.which("java") is None, reason="needs scienceworld and Java"
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Put it into the red box in the hall.", "Put it into the blue box in the hall.", {"red box": "blue box"}),
        (
            "Focus on the steel fork in the workshop.",
            "Focus on the tin in the workshop.",
            {"steel fork": "tin"},
        ),
        ("the box in the kitchen", "the box in the art studio", {"kitchen": "art studio"}),
        ("a long task about plants that grow", "measure how hot it is", {}),  # of another kind: nothing is mapped
        ("the same words", "the same words", {}),
    ],
)
def test_phrases_are_mapped(old, new, expected):
    assert mapped_phrases(old, new) == expected


def test_whole_phrases_are_replaced_and_the_longest_first():
    phrases = {"red box": "blue box", "red": "green", "box": "crate"}
    assert substituted("move red ant to red box, then boxes", phrases) == "move green ant to blue box, then boxes"
    assert substituted("untouched", {}) == "untouched"


def test_deeds_know_their_room_and_skip_the_ways():
    old = Experiment("Find it.", "This room is called the hallway. In it, you see: a door", "nothing")
    walk = Trajectory(
        [
            Step(action="focus on door", observation="You focus."),
            Step(action="teleport to kitchen", observation="You teleport.\nThis room is called the kitchen. In it: a cup"),
            Step(action="pick up cup", observation="You take it."),
        ]
    )
    assert [(deed.room, deed.action) for deed in deeds(old, walk)] == [("hallway", "focus on door"), ("kitchen", "pick up cup")]
    assert Experiment.of(old.text) == old


def test_outcomes_are_kept_by_what_they_depend_on(tmp_path):
    done = Trajectory([Step(action="look", observation="dark")])
    file = tmp_path / "outcomes.sqlite"
    with contextlib.closing(Outcomes(file)) as first, contextlib.closing(Outcomes(file)) as second:
        first.keep(["place", "case"], Outcome(True, done))
        first.keep(["place", "case"], Outcome(False, None))  # a second process was slower: the same, or it would be a mistake
        assert second.known(["place", "case"]) == Outcome(True, done)
        assert second.known(["placecase"]) is None
        assert second.known(["place", "", "case"]) is None


class Listing:
    """Stands in for the world where only the choice of variations is looked at."""

    def training_variations(self, kind: str) -> list[int]:
        return list(range(LIMITS[kind]))

    def close(self) -> None: ...


def test_without_a_limit_the_stream_is_in_the_order_of_its_variations_and_a_limit_makes_no_more(tmp_path, monkeypatch):
    made: list[Place] = []

    def make(world: object, place: Place) -> ScienceTask | None:
        made.append(place)
        return None if place.variation % 3 == 0 else ScienceTask(place, str(place), Trajectory([Step("look")]))

    monkeypatch.setattr(scienceworld_tasks, "ScienceWorld", Listing)
    monkeypatch.setattr(scienceworld_tasks, "solved_task", make)
    file = tmp_path / "tasks.jsonl"
    some = science_tasks(file, limit=5, progress=False)
    assert len(some) == 5
    assert len(made) == len(set(made)) < 20
    whole = science_tasks(file, progress=False)
    every = places(Listing())
    assert len(made) == len(set(made)) == len(every)  # nothing is made twice
    assert [task.place for task in whole] == [place for place in every if place.variation % 3]
    assert science_tasks(file, limit=5, progress=False) == some
    assert science_tasks(file, limit=10, progress=False)[:5] == some
    file.with_suffix(".places.json").unlink()
    file.with_suffix(".complete").touch()  # as an earlier version left it
    monkeypatch.setattr(scienceworld_tasks, "ScienceWorld", None)
    assert {task.place for task in science_tasks(file, progress=False)} == {task.place for task in whole}


def shown(task: ScienceTask, solution: Trajectory | None = None) -> RecalledCase:
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    return RecalledCase(id="case", query=task.text, solution=solution or task.solution, metadata={}, **numbers)


@pytest.mark.long
@with_world
def test_experiments_are_reused_in_the_real_world(tmp_path, monkeypatch):
    kinds = ("find-animal", "lifespan-longest-lived")
    monkeypatch.setattr(scienceworld_tasks, "LIMITS", {kind: LIMITS[kind] for kind in kinds})
    monkeypatch.setattr(scienceworld_tasks, "SET_ASIDE", 2)
    file = tmp_path / "tasks.jsonl"
    tasks = science_tasks(file, for_development=True, progress=False)
    assert {task.place.kind for task in tasks} == set(kinds)
    with file.open("a") as lines:
        lines.write('{"kind": "find-an')  # a kill in the middle of a line
    assert science_tasks(file, for_development=True, progress=False) == tasks
    agent = agent_for(tasks, tmp_path)
    try:
        own = [agent.attempt(i, [shown(task)]) for i, task in enumerate(tasks)]
        assert np.mean([attempt.success for attempt in own]) >= 0.75  # a replayed solution solves its own task
        assert all(attempt.answer is not None and attempt.steps <= tasks[i].limit for i, attempt in enumerate(own))
        of_another_kind = next(task for task in tasks if task.place.kind == "lifespan-longest-lived")
        wrong = agent.attempt(0, [shown(of_another_kind)])
        assert (tasks[0].place.kind, wrong.success) == ("find-animal", False)
        assert agent.attempt(0, []).success is False
        assert agent.attempt(0, [shown(tasks[0], Trajectory([Step(action="dance")]))]).success is False
    finally:
        agent.close()
    again = agent_for(tasks, tmp_path)
    monkeypatch.setattr(scienceworld, "ScienceWorld", None)  # none is needed: all of it is known
    assert [again.attempt(i, [shown(task)]) for i, task in enumerate(tasks)] == own
    alone = agent_for(tasks, tmp_path, alone=True).attempt(0, [shown(of_another_kind)])
    assert (alone.success, alone.answer) == (True, tasks[0].solution)


def agent_for(tasks: list[ScienceTask], folder: Path, *, alone: bool = False) -> ScienceAgent:
    return ScienceAgent(
        tasks,
        alone=[alone] * len(tasks),
        embedder=HashingEmbedder(),
        outcomes=folder / "outcomes.sqlite",
        strength="full",
    )


@with_world
def test_what_was_set_aside_is_not_in_the_stream_and_no_test_variation_is(monkeypatch):
    monkeypatch.setattr(scienceworld_tasks, "LIMITS", {"find-plant": 15, "lifespan-longest-lived": 10})
    world = ScienceWorld()
    try:
        stream, aside = places(world), places(world, for_development=True)
        training = {
            Place(kind, variation)
            for kind in ("find-plant", "lifespan-longest-lived")
            for variation in world.training_variations(kind)
        }
    finally:
        world.close()
    assert set(stream) | set(aside) == training
    assert not set(stream) & set(aside)
