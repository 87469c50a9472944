"""A real language model that acts in an environment with recalled trajectories: with thoughts (ReAct) or actions only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.domain.validation import clean_text
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message
from cascade_memory.evaluation.model.model_solver import prompt
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.visible import shortened

_THINKS = 'Before each action, think: answer with a line "Thought: ..." and a line "Action: ...".'
_ACTS = 'Answer with one line, "Action: ...", and nothing else.'
_ACTION = re.compile(r"^\W*action\W*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(r"thought\W*:\s*(.*?)\s*(?=^\W*action\W*:|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL)

_MOST_OF_A_THOUGHT = 10_000  # characters; thirty thoughts of this length still fit into a stored solution


class Scene(Protocol):
    """An environment with the tasks of a stream."""

    @property
    def instruction(self) -> str:
        """A description of the possible actions."""
        ...

    def begin(self, place: int) -> str:
        """Begin the task at this place of the stream; return its text and the first observation."""
        ...

    def limit(self, place: int) -> int:
        """The largest number of actions for the task."""
        ...

    def act(self, action: str) -> str:
        """Perform an action; return the observation, or that the action is not possible."""
        ...

    @property
    def solved(self) -> bool:
        """Whether the task is done."""
        ...

    @property
    def over(self) -> bool:
        """Whether the task has ended, solved or not."""
        ...

    def close(self) -> None:
        """Close the environment."""
        ...


class ActingSolver:
    """Lets a model act until the task has ended or the steps are used up. A case stores the trajectory.

    With ``thinks``, the model is asked for a thought before each action (ReAct). An unknown action counts as a step too.
    """

    def __init__(self, scene: Scene, asking: Asking, *, thinks: bool = True) -> None:
        self._scene, self._asking = scene, asking
        self._instruction = f"{scene.instruction} {_THINKS if thinks else _ACTS}"

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream."""
        scene = self._scene
        messages: list[Message] = prompt(self._instruction, scene.begin(place), cases)
        steps: list[Step] = []
        while not scene.over and len(steps) < scene.limit(place):
            reply = self._asking(messages)
            thought, action = thought_and_action(reply)
            observation = scene.act(action)
            steps.append(Step(action=action, observation=observation, thought=thought))
            messages = [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": observation}]
        return Attempt(scene.solved, Trajectory(steps) if steps else None, steps=len(steps))


def thought_and_action(reply: str) -> tuple[str, str]:
    r"""Split a reply into the thought and the first action; without the word "Action:", the last line is the action.

    >>> thought_and_action("Thought: It is hot.\nAction: open the door\nObservation: ...")
    ('It is hot.', 'open the door')
    >>> thought_and_action("go to desk 1\n")
    ('', 'go to desk 1')
    """
    reply = clean_text(reply)
    thought, action = _THOUGHT.search(reply), _ACTION.search(reply)
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    chosen = action[1] if action else next(reversed(lines), "look")
    return shortened(thought[1], _MOST_OF_A_THOUGHT) if thought else "", chosen.strip(" .`*\"'")[:200] or "look"
