"""A real language model that acts in an environment with recalled trajectories: with thoughts (ReAct) or actions only.

A model that thinks but has no case gets one example of a solved task for each world, as in the paper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, runtime_checkable

from cascade_memory import RecalledCase, Step, Trajectory, clean_text
from cascade_memory.cycle import NOTHING, Show, is_failure, is_only_text, render, said
from cascade_memory.domain import solution_text
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message, PromptTooLong
from cascade_memory.evaluation.model.model_solver import as_answered, prompt
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.visible import shortened

HOUSEHOLD_EXAMPLE = """\
Task: You are in the middle of a room. Looking quickly around you, you see a armchair 1, a drawer 2, a drawer 1, a shelf 1, \
and a sofa 1.

Your task is to: put some watch on sofa.
Solution:
Action: think: First I have to find a watch. It may be on the shelf, in a drawer or on the armchair.
OK.
Action: go to shelf 1
On the shelf 1, you see a book 1, and a vase 2.
Action: go to drawer 1
The drawer 1 is closed.
Action: open drawer 1
You open the drawer 1. The drawer 1 is open. In it, you see a keychain 1, and a watch 1.
Action: think: There is the watch. I take it, and then I bring it to the sofa.
OK.
Action: take watch 1 from drawer 1
You pick up the watch 1 from the drawer 1.
Action: go to sofa 1
On the sofa 1, you see a pillow 1.
Action: move watch 1 to sofa 1
You move the watch 1 to the sofa 1.
"""
SCIENCE_EXAMPLE = """\
Task: Your task is to find a(n) animal. First, focus on the thing. Then, move it to the green box in the workshop.
This room is called the hallway. In it, you see:
\tthe agent
\ta substance called air
\ta picture
You also see:
\tA door to the greenhouse (that is open)
\tA door to the workshop (that is open)
In your inventory, you see:
\tan orange
Solution:
Action: think: Animals live outside. I look there first.
OK.
Action: teleport to outside
You teleport to the outside.
Action: look around
This outside location is called the outside. Here you see:
\tthe agent
\ta substance called air
\tan axe
\ta turtle egg
\ta dove
Action: think: The dove is an animal. I focus on it, and then I bring it to the green box.
OK.
Action: focus on dove
You focus on the dove.
Action: pick up dove
You move the dove to the inventory.
Action: teleport to workshop
You teleport to the workshop.
Action: move dove to green box
You move the dove to the green box.
"""
_THINKS = 'Before each action, think: answer with a line "Thought: ..." and a line "Action: ...".'
_ACTS = 'Answer with one line, "Action: ...", and nothing else.'
_MAY_THINK = (
    'Answer with one line, "Action: ...", and nothing else. You may also think, where it is needed: the action "think: ..." '
    "with your thought changes nothing in the world, is answered with OK, and counts as an action."
)
_THINK = re.compile(r"think\W*:\s*(.*)", re.IGNORECASE | re.DOTALL)
# "Action: ...", and what models make of it: "Action 1: ...", "**Action:** ...", "[Action] ...".
_ACTION = re.compile(r"^\W*action\W{0,3}\d{0,3}\W*[:\]]\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(
    r"thought\W{0,3}\d{0,3}\W*:\s*(.*?)\s*(?=^\W*action\W{0,3}\d{0,3}\W*:|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_INVENTED = re.compile(
    r"^\W*observation\W{0,3}\d{0,3}\W*:", re.IGNORECASE | re.MULTILINE
)  # a model must not write what it sees
_NOW = "The task to do now:\n\n"
_AROUND = " .>`*\"'"  # signs around an action
_MOST_OF_AN_ACTION = 200  # characters
_MOST_OF_A_CASE = 60_000  # characters: 35 steps with long descriptions of rooms
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


@runtime_checkable
class World(Protocol):
    """What a scene may add: which actions are possible, what a model that thinks needs, and whether an action was refused."""

    room_for_thoughts: int  # how many more steps there are for a model that thinks, since each thought is a step
    example: str  # a solved task with thoughts, shown to a model that thinks when there is no case
    refused: bool  # whether the last action was none of the world, and did nothing

    def possible(self) -> Sequence[str]:
        """List the actions to choose from; the list is empty if the model is not shown them."""
        ...


class ActingSolver:
    """Lets a model act until the task has ended or the steps are used up. A case stores the trajectory.

    With ``thinks``, the model is asked for a thought before each action (ReAct); in a ``World``, a thought is an action of its
    own. A refused action counts as a step too, but it is not stored. The conversation has the model's thoughts and actions and
    the environment's observations. What else the model wrote is left out, such as observations that it made up. A conversation
    that is too long for the model ends the attempt.

    With ``show="turns"``, cases are shown as earlier conversations of the same form: the actions are messages of the model, and
    the observations are messages to it.
    """

    def __init__(self, scene: Scene, asking: Asking, *, thinks: bool = True, show: Show = "text") -> None:
        self._scene, self._asking, self._show = scene, asking, show
        self._world = scene if isinstance(scene, World) else None
        self._thinks = thinks
        how = _ACTS if not thinks else _THINKS if self._world is None else _MAY_THINK
        self._instruction = " ".join([scene.instruction, how])

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream."""
        scene, world = self._scene, self._world
        messages = self._first(scene.begin(place), cases)
        limit = scene.limit(place) + (world.room_for_thoughts if world is not None and self._thinks else 0)
        steps: list[Step] = []
        taken = 0
        while not scene.over and taken < limit:
            try:
                reply = self._asking(self._with_choice(messages))
            except PromptTooLong:
                break
            taken += 1
            thought, action = thought_and_action(reply)
            step, refused = self._step(thought, action)
            if not refused:
                steps.append(step)
            done = f"Thought: {thought}\nAction: {action}" if thought else f"Action: {action}"
            messages = [
                *messages,
                {"role": "assistant", "content": done},
                {"role": "user", "content": step.observation if step.observation.strip() else NOTHING},
            ]
        return Attempt(scene.solved, Trajectory(steps) if steps else None, steps=taken)

    def _step(self, thought: str, action: str) -> tuple[Step, bool]:
        """Perform an action; return it with its observation, and whether it was refused."""
        if self._world is None:
            return Step(action=action, observation=self._scene.act(action), thought=thought), False
        if self._thinks and (alone := _THINK.fullmatch(action)):
            return Step(thought=alone[1] or "...", observation="OK."), False
        observation = self._scene.act(action)
        return Step(action=action, observation=observation, thought=thought), self._world.refused

    def _first(self, task: str, cases: Sequence[RecalledCase]) -> list[Message]:
        """Build the first messages.

        In a ``World``, a case may be much longer before it is cut, since each step of it may matter.
        """
        if self._show == "turns" and cases and not any(is_only_text(case) for case in cases):
            return [{"role": "system", "content": self._instruction}, *self._earlier(cases, task)]
        cases = [as_answered(case, self._as_said) for case in cases]
        if self._world is None or any(is_failure(case) for case in cases):
            return prompt(self._instruction, task, cases)
        if self._thinks and not cases:
            task = f"An example of a solved task:\n\n{self._world.example}\n{_NOW}{task}"
        shown = render(cases, max_case_chars=_MOST_OF_A_CASE, max_total_chars=2 * _MOST_OF_A_CASE)
        return [{"role": "system", "content": self._instruction}, {"role": "user", "content": f"{shown}{task}"}]

    def _earlier(self, cases: Sequence[RecalledCase], task: str) -> list[Message]:
        """Write the cases as earlier turns, the most promising last, and then the task; cases that do not fit are left out."""
        sizes = [min(len(case.query) + len(solution_text(case.solution)), _MOST_OF_A_CASE) for case in cases]
        fits = max(1, sum(size <= 2 * _MOST_OF_A_CASE for size in accumulate(sizes)))
        written: list[Message] = []
        begins = ""  # what was seen last in a conversation stands before the next task: two turns of one side are refused
        for case in reversed(cases[:fits]):
            steps = case.solution.steps if isinstance(case.solution, Trajectory) else (Step(action=case.solution),)
            most = _MOST_OF_A_CASE // (2 * len(steps) + 1)
            seen = f"{begins}{said(case.query, most)}"
            for step in steps:
                if done := self._said(step):
                    written += [{"role": "user", "content": seen}, {"role": "assistant", "content": said(done, most)}]
                    seen = said(step.observation, most)
            begins = f"{seen}\n\n{_NOW}"
        return [*written, {"role": "user", "content": f"{begins}{task}"}]

    def _as_said(self, step: Step) -> str:
        return "\n".join(filter(None, [done, step.observation])) if (done := self._said(step)) else ""

    def _said(self, step: Step) -> str:
        """Write a step of a case as a reply of the model.

        A step that is only a thought becomes an action in a ``World`` if the model thinks; otherwise the text is empty.
        """
        if step.action:
            return "\n".join(filter(None, [f"Thought: {step.thought}" if step.thought else "", f"Action: {step.action}"]))
        return f"Action: think: {step.thought}" if self._thinks and self._world is not None else ""

    def _with_choice(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Add the possible actions to the last message; those of earlier steps are not shown again."""
        listed = self._world.possible() if self._world is not None else ()
        if not listed:
            return messages
        last = messages[-1]
        content = f"{last['content']}\n\nPossible actions now:\n" + "\n".join(listed)
        return [*messages[:-1], {"role": last["role"], "content": content}]


def writes_observations(reply: str) -> bool:
    r"""Say whether a reply contains an observation, which only the environment should write.

    >>> writes_observations("Action: look\nObservation: a cup"), writes_observations("Action: look")
    (True, False)
    """
    return _INVENTED.search(reply) is not None


def thought_and_action(reply: str) -> tuple[str, str]:
    r"""Split a reply into the thought and the first action; without the word "Action:", the last line is the action.

    >>> thought_and_action("Thought: It is hot.\nAction: open the door\nObservation: ...")
    ('It is hot.', 'open the door')
    >>> thought_and_action("go to desk 1\n"), thought_and_action("Action 1: [go to bed 1]")
    (('', 'go to desk 1'), ('', 'go to bed 1'))
    """
    reply = clean_text(reply)
    if (invented := _INVENTED.search(reply)) is not None and invented.start() > 0:
        reply = reply[: invented.start()]
    thought, action = _THOUGHT.search(reply), _ACTION.search(reply)
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    chosen = action[1] if action else next(reversed(lines), "look")
    most = _MOST_OF_A_THOUGHT if _THINK.match(chosen) else _MOST_OF_AN_ACTION
    chosen = chosen.strip(_AROUND)
    if chosen.startswith("[") and chosen.endswith("]"):
        chosen = chosen[1:-1].strip(_AROUND)
    return shortened(thought[1], _MOST_OF_A_THOUGHT) if thought else "", chosen[:most] or "look"
