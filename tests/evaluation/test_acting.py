"""A model that acts: what it says becomes actions, what it did becomes a case, and the worlds are the real ones."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.evaluation.bench import household_stage
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.model import Asking, Model
from cascade_memory.evaluation.model.acting import ActingSolver, thought_and_action
from cascade_memory.evaluation.model.chat import Message, Reply

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
        ("[Action] go to desk 1", "", "go to desk 1"),
        ("> go to desk 1", "", "go to desk 1"),
        ("Action: think: where is it?", "", "think: where is it?"),
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


class Hall(Door):
    """The door again, in a world that lists what is possible and in which a model may think."""

    room_for_thoughts = 2
    example = "Task: There is a gate.\nAction: open gate\n"
    refused = False

    def possible(self) -> Sequence[str]:
        return ["open door", "knock"]

    def act(self, action: str) -> str:
        self.refused = action not in self.possible()
        return "No." if self.refused else super().act(action)


def shown(place: int = 9) -> RecalledCase:
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    walk = ActingSolver(Door(), Asking(Scripted(lambda messages: "Action: open door"))).attempt(0, ()).answer
    return RecalledCase(id="c", query=f"There is door {place}.", solution=walk, metadata={}, **numbers)


def test_in_a_world_thoughts_are_steps_and_what_is_refused_is_not_stored():
    said = ["Action: think: I try the door", "Action: dance", "[Action] knock", "Action: open door"]
    chat = Scripted(lambda messages: said[len(messages) // 2 - 1])
    attempt = ActingSolver(Hall(), Asking(chat)).attempt(0, ())
    assert (attempt.success, attempt.steps) == (True, 4)
    assert isinstance(attempt.answer, Trajectory)
    assert [(step.thought, step.action, step.observation) for step in attempt.answer.steps] == [
        ("I try the door", "", "OK."),
        ("", "knock", "Nothing happens."),
        ("", "open door", "It opens."),
    ]
    endless = ActingSolver(Hall(), Asking(Scripted(lambda messages: "Action: think: ...")))
    assert endless.attempt(0, ()).steps == 3 + Hall.room_for_thoughts
    acts = Scripted(lambda messages: "Action: think: ...")
    attempt = ActingSolver(Hall(), Asking(acts), thinks=False).attempt(0, ())
    assert (attempt.steps, attempt.answer) == (3, None)  # without thoughts, that is no action
    assert acts.asked[1][-1]["content"].startswith("No.")


def test_in_a_world_the_choice_is_shown_once_and_an_example_only_without_cases():
    chat = Scripted(lambda messages: "Action: knock")
    ActingSolver(Hall(), Asking(chat)).attempt(0, ())
    for messages in chat.asked:
        assert messages[-1]["content"].endswith("Possible actions now:\nopen door\nknock")
        assert sum("Possible actions" in one["content"] for one in messages) == 1
    assert "There is a gate." in chat.asked[0][1]["content"]
    for solver, cases in (
        (ActingSolver(Hall(), Asking(chat)), [shown()]),
        (ActingSolver(Hall(), Asking(chat), thinks=False), []),
    ):
        chat.asked.clear()
        solver.attempt(0, cases)
        assert "There is a gate." not in chat.asked[0][1]["content"]


def test_in_a_world_a_case_is_shown_whole():
    steps = [Step(action=f"step {n}", observation="There is much to see here. " * 20) for n in range(30)]
    case = dataclasses.replace(shown(), solution=Trajectory(steps))
    chat = Scripted(lambda messages: "Action: open door")
    ActingSolver(Hall(), Asking(chat)).attempt(0, [case])
    assert all(f"Action: step {n}\n" in chat.asked[0][1]["content"] for n in range(30))
    failed = dataclasses.replace(case, metadata={"solved": False})
    ActingSolver(Hall(), Asking(chat)).attempt(0, [failed])
    assert any(word in chat.asked[-1][1]["content"] for word in ("wrong", "failed"))


def test_cases_are_shown_as_fenced_data():
    chat = Scripted(
        lambda messages: "Action: open door" if "Action: open door\n" in messages[1]["content"] else "Action: knock"
    )
    assert ActingSolver(Door(), Asking(chat)).attempt(0, [shown()]).success
    assert "data recorded from earlier tasks" in chat.asked[0][1]["content"]
    assert not ActingSolver(Door(), Asking(chat)).attempt(0, ()).success


@pytest.mark.parametrize("world", [Door, Hall])
def test_as_turns_a_case_is_a_conversation_of_the_same_form(world: type[Door]):
    chat = Scripted(lambda messages: "Action: open door")
    longer = Trajectory(
        [Step(action="knock", observation="Nothing happens."), Step(thought="so", action="open door", observation="It opens.")]
    )
    cases = [dataclasses.replace(shown(8)), dataclasses.replace(shown(9), solution=longer)]
    assert ActingSolver(world(), Asking(chat), show="turns").attempt(0, cases).success
    _, *said = chat.asked[0]
    assert [one["role"] for one in said] == ["user", "assistant"] * 3 + ["user"]
    assert [one["content"].removesuffix("\n\nPossible actions now:\nopen door\nknock") for one in said] == [
        "There is door 9.",
        "Action: knock",
        "Nothing happens.",
        "Thought: so\nAction: open door",
        "It opens.\n\nThe task to do now:\n\nThere is door 8.",
        "Action: open door",
        "It opens.\n\nThe task to do now:\n\nThere is door 0.",
    ]
    for doubtful in (dataclasses.replace(cases[0], trust=1), dataclasses.replace(cases[0], metadata={"solved": False})):
        ActingSolver(world(), Asking(chat), show="turns").attempt(0, [doubtful])
        assert [one["role"] for one in chat.asked[-1]] == ["system", "user"]


@with_games
def test_in_a_household_game_the_known_solution_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(household_stage, "MADE", 2)
    household_stage.embedded.cache_clear()
    solutions: dict[str, Sequence[str]] = {}

    def say(messages: Sequence[Message]) -> str:
        actions = solutions[messages[1]["content"].split("\n\nPossible actions now:")[0]]
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
