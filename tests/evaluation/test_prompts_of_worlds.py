"""What a model is shown in the worlds, kept as texts that a person can read: with and without thoughts and a case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.evaluation.model import Asking
from cascade_memory.evaluation.model.acting import ActingSolver
from cascade_memory.evaluation.model.chat import Message, Reply
from cascade_memory.evaluation.model.scenes import HouseholdScene, ScienceScene

PROMPTS = Path(__file__).parents[1] / "fixtures" / "prompts"


class Kitchen(HouseholdScene):
    """A household scene whose room is written here, so that no engine is needed: only what is shown is looked at."""

    solved = over = False

    def begin(self, place: int) -> str:
        return (
            "You are in the middle of a room. Looking quickly around you, you see a fridge 1, and a shelf 1.\n\n"
            "Your task is to: cool some cup and put it in shelf."
        )

    def possible(self) -> Sequence[str]:
        return ["examine shelf 1", "go to fridge 1", "inventory", "look", "take cup 1 from shelf 1"]

    def act(self, action: str) -> str:
        return "You pick up the cup 1 from the shelf 1."


class Laboratory(ScienceScene):
    """A scene of science whose room is written here."""

    solved = over = False

    def begin(self, place: int) -> str:
        return (
            "Your task is to find a(n) plant. First, focus on the thing. Then, move it to the red box in the kitchen.\n"
            "This room is called the bedroom. In it, you see:\n\tthe agent\n\ta bed\nIn your inventory, you see:\n\tan orange"
        )

    def limit(self, place: int) -> int:
        return 1

    def act(self, action: str) -> str:
        return "You teleport to the greenhouse."


class Chat:
    """A model that says one thing, and keeps what it was shown."""

    name, settings = "one thing", {}

    def __init__(self, says: str) -> None:
        self.says = says
        self.last: Sequence[Message] = ()

    def complete(self, messages: Sequence[Message], note: object) -> Reply:
        self.last = messages
        return Reply(self.says, prompt_tokens=1, completion_tokens=1)


def case() -> RecalledCase:
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    walk = Trajectory([Step(thought="It may be here.", observation="OK."), Step(action="look", observation="There it is.")])
    return RecalledCase(id="1", query="An earlier task.", solution=walk, metadata={}, **numbers)


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("with_case", [True, False])
@pytest.mark.parametrize("world", ["alfworld", "scienceworld"])
def test_what_is_shown_is_what_is_kept(world: str, with_case: bool, thinks: bool):
    scene = Kitchen((), 2) if world == "alfworld" else Laboratory(())
    chat = Chat("Action: take cup 1 from shelf 1" if world == "alfworld" else "Action: teleport to greenhouse")
    scene_limit = scene.limit(0)
    scene.room_for_thoughts = 2 - scene_limit if thinks else 0  # so that the second request is the last
    ActingSolver(scene, Asking(chat), thinks=thinks).attempt(0, [case()] if with_case else [])
    text = "".join(f"=== {one['role']}\n{one['content']}\n" for one in chat.last)
    name = f"{world}{'' if thinks else '-act-only'}{'-with-a-case' if with_case else ''}.txt"
    if os.environ.get("KEEP_PROMPTS"):
        PROMPTS.mkdir(parents=True, exist_ok=True)
        (PROMPTS / name).write_text(text, encoding="utf-8")
    kept = (PROMPTS / name).read_text(encoding="utf-8")
    assert text == kept, f"read {PROMPTS / name}, and keep the new text with KEEP_PROMPTS=1 if it is meant"
