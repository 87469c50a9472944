"""A model that acts: what it says becomes actions, what it did becomes a case, and the worlds are the real ones."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.evaluation.bench import household_stage, science_stage
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.environments import scienceworld_tasks
from cascade_memory.evaluation.environments.scienceworld import LIMITS
from cascade_memory.evaluation.model import Asking, Model
from cascade_memory.evaluation.model.acting import ActingSolver, thought_and_action
from cascade_memory.evaluation.model.chat import Message, Reply

with_science = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None or shutil.which("java") is None, reason="needs scienceworld and Java"
)
with_games = pytest.mark.skipif(importlib.util.find_spec("alfworld") is None, reason="needs alfworld")


class Scripted:
    """A chat model whose replies are a function of the messages."""

    name: ClassVar[str] = "scripted"
    settings: ClassVar[dict[str, Any]] = {"temperature": 0.0}

    def __init__(self, say: Callable[[Sequence[Message]], str]) -> None:
        self.say = say
        self.asked: list[Sequence[Message]] = []

    def complete(self, messages: Sequence[Message], note: object) -> Reply:
        self.asked.append(messages)
        return Reply(self.say(messages), prompt_tokens=10, completion_tokens=2)


class Door:
    """A world of one door."""

    instruction = "Open the door."
    solved = over = False

    def begin(self, place: int) -> str:
        self.solved = self.over = False
        return f"There is door {place}."

    def limit(self, place: int) -> int:
        return 3

    def act(self, action: str) -> str:
        self.solved = self.over = action == "open door"
        return "It opens." if self.solved else "Nothing happens."

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("reply", "thought", "action"),
    [
        ("Thought: hot\nAction: open door", "hot", "open door"),
        ("**Action:** `open door`.", "", "open door"),
        ("Thought: first this,\nthen that\nAction: wait1\nAction: open door", "first this,\nthen that", "wait1"),
        ("I would open it.\nopen door", "", "open door"),
        ("", "", "look"),
        ("Action: ...", "", "look"),
    ],
)
def test_replies_become_actions(reply, thought, action):
    assert thought_and_action(reply) == (thought, action)


@pytest.mark.parametrize("thinks", [True, False])
def test_it_acts_until_it_is_over_or_out_of_steps(thinks):
    chat = Scripted(lambda messages: "Thought: so\nAction: open door" if len(messages) > 3 else "Action: knock")
    solver = ActingSolver(Door(), Asking(chat), thinks=thinks)
    attempt = solver.attempt(4, ())
    assert (attempt.success, attempt.steps) == (True, 2)
    assert isinstance(attempt.answer, Trajectory)
    assert [(step.action, step.observation) for step in attempt.answer.steps] == [
        ("knock", "Nothing happens."),
        ("open door", "It opens."),
    ]
    assert ("Thought" in chat.asked[0][0]["content"]) is thinks
    assert chat.asked[0][1]["content"] == "There is door 4."
    never = ActingSolver(Door(), Asking(Scripted(lambda messages: "Action: knock")))
    assert (never.attempt(0, ()).success, never.attempt(0, ()).steps) == (False, 3)


def test_cases_are_shown_as_fenced_data():
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    walk = ActingSolver(Door(), Asking(Scripted(lambda messages: "Action: open door"))).attempt(0, ()).answer
    chat = Scripted(lambda messages: "Action: open door" if "> open door" in messages[1]["content"] else "Action: knock")
    case = RecalledCase(id="c", query="There is door 9.", solution=walk, metadata={}, **numbers)
    assert ActingSolver(Door(), Asking(chat)).attempt(0, [case]).success
    assert "data recorded from earlier tasks" in chat.asked[0][1]["content"]
    assert not ActingSolver(Door(), Asking(chat)).attempt(0, ()).success


@with_science
def test_in_scienceworld_from_the_first_request_to_the_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scienceworld_tasks, "LIMITS", {"lifespan-longest-lived": LIMITS["lifespan-longest-lived"]})
    monkeypatch.setattr(scienceworld_tasks, "PER_KIND", 4)
    science_stage.embedded.cache_clear()
    plan = ["teleport to outside", "look around", "jump over the moon"]
    chat = Scripted(lambda messages: f"Thought: next\nAction: {plan[(len(messages) // 2 - 1) % 3]}")
    try:
        (row,) = measure(
            ["scienceworld"], data=tmp_path, solver=Model(chat=chat), out=tmp_path / "rows.jsonl", methods=["NP-CBR"], seeds=1,
            limit=2, progress=False,
        )  # fmt: skip
    finally:
        science_stage.embedded.cache_clear()
    assert (row["solver"], row["n"], row["rate"], row["steps_per_task"]) == ("scripted", 2, 0.0, 10.0)
    assert (row["requests"], row["tokens"]) == (20, 240)
    said = [messages[-1]["content"] for messages in chat.asked]
    assert any("This outside location is called the outside" in text for text in said)
    assert any(text == "That is no action that can be done here." for text in said)


@with_games
def test_in_a_household_game_the_known_solution_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(household_stage, "MADE", 2)
    household_stage.embedded.cache_clear()
    solutions: dict[str, Sequence[str]] = {}

    def say(messages: Sequence[Message]) -> str:
        actions = solutions[messages[1]["content"].split("--- memory")[-1]]
        return f"Action: {actions[len(messages) // 2 - 1]}"

    try:
        household_stage.make_games(tmp_path / "rows.work" / "games", count=2, seed=household_stage.SEED, progress=False)
        for game in household_stage.read_games(tmp_path / "rows.work" / "games"):
            solutions[game.query] = game.solution
        (row,) = measure(
            ["alfworld-30"], data=tmp_path, solver=Model(chat=Scripted(say), thinks=False), out=tmp_path / "rows.jsonl",
            methods=["zero-shot"], seeds=1, progress=False,
        )  # fmt: skip
    finally:
        household_stage.embedded.cache_clear()
    assert (row["rate"], row["n"], row["declared"]) == (1.0, 2, {"temperature": 0.0, "thinks": False})
