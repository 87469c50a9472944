"""A solution of several steps: what was done and what was seen."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from cascade_memory.domain.plain_json import plain_json
from cascade_memory.domain.validation import MAX_SOLUTION_CHARS, check_text, check_whole
from cascade_memory.errors import InvalidInput
from cascade_memory.redaction.marking import cut_short
from cascade_memory.visible import shown_visibly

MOST_STEPS = MAX_SOLUTION_CHARS // 2  # each takes a character and a line break


@shown_visibly
@dataclass(frozen=True, slots=True)
class Step:
    r"""One action and its observation; for a tool call, the name of the tool, its arguments and its result.

    >>> Step(action="open the fridge", observation="You see a cup.").as_text()
    '> open the fridge\nYou see a cup.'
    >>> Step(tool="search", arguments={"q": "Turing"}, observation="Alan Turing was ...").action
    'search({"q": "Turing"})'
    """

    action: str = ""
    observation: str = ""
    thought: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failed: bool = False  # the tool raised, or reported an error

    def __post_init__(self) -> None:
        if self.tool is not None:
            object.__setattr__(self, "tool", check_text(self.tool, "step.tool", MAX_SOLUTION_CHARS))
        if type(self.failed) is not bool:
            object.__setattr__(self, "failed", check_whole(self.failed, "step.failed", 0, 1) == 1)
        plain = plain_json(self.arguments, "step.arguments")
        object.__setattr__(self, "arguments", plain)
        arguments = json.dumps(plain, ensure_ascii=False, sort_keys=True)
        check_text(arguments, "step.arguments", MAX_SOLUTION_CHARS)
        if self.tool is not None and not self.action:
            object.__setattr__(self, "action", f"{self.tool}({arguments})")
        for name in ("action", "observation", "thought"):
            text = check_text(getattr(self, name), f"step.{name}", MAX_SOLUTION_CHARS, allow_empty=True)
            object.__setattr__(self, name, text)
        if not (self.action or self.thought):
            raise InvalidInput("a step needs an action, a tool or a thought")

    def as_text(self) -> str:
        """Render the step as an agent would have seen it."""
        lines = [f"({self.thought})"] if self.thought else []
        if self.action:
            lines.append(f"> {self.action}")
        if self.observation:
            lines.append(self.observation)
        return "\n".join(lines)


@shown_visibly
@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps that led to a solution, and the final answer if there was one.

    >>> walk = Trajectory([Step(action="take cup 1", observation="You take the cup.")], answer="done")
    >>> print(walk.as_text())
    > take cup 1
    You take the cup.
    Answer: done
    """

    steps: Sequence[Step]
    answer: str = ""

    def __post_init__(self) -> None:
        given = cast("object", self.steps)
        steps = tuple(itertools.islice(given, MOST_STEPS + 1)) if isinstance(given, Iterable) else ()
        if not steps or not all(isinstance(step, Step) for step in cast("tuple[object, ...]", steps)):
            raise InvalidInput("a trajectory needs at least one Step(action=..., observation=...)")
        if len(steps) > MOST_STEPS:
            raise InvalidInput(f"a trajectory has {MOST_STEPS:,} steps at most; leave out those that do not matter")
        object.__setattr__(self, "steps", steps)
        answer = check_text(self.answer, "trajectory.answer", MAX_SOLUTION_CHARS, allow_empty=True)
        object.__setattr__(self, "answer", answer)

    def as_text(self) -> str:
        """Render all steps and the answer."""
        parts = [step.as_text() for step in self.steps]
        if self.answer:
            parts.append(f"Answer: {self.answer}")
        return "\n".join(parts)

    def to_json(self) -> str:
        """Serialise to JSON; ``Trajectory.from_json`` reads it back."""
        steps = [{key: value for key, value in _plain(step).items() if value} for step in self.steps]
        return json.dumps({"steps": steps, "answer": self.answer}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Trajectory:
        """Read what ``to_json`` wrote.

        >>> Trajectory.from_json(Trajectory([Step(action="look")]).to_json()).steps[0].action
        'look'
        """
        raw = json.loads(text)
        return cls([Step(**step) for step in raw["steps"]], answer=raw["answer"])


def _plain(step: Step) -> dict[str, Any]:
    return {
        "action": step.action,
        "observation": step.observation,
        "thought": step.thought,
        "tool": step.tool,
        "arguments": dict(step.arguments),
        "failed": step.failed,
    }


def capped(
    trajectory: Trajectory, *, max_field_chars: int = 8_000, max_steps: int = 100, max_chars: int = 400_000
) -> Trajectory:
    r"""Shorten a trajectory so that it can be stored. The beginning and the end stay; a note says how much was cut.

    >>> capped(Trajectory([Step(action="look", observation="x" * 100)]), max_field_chars=40).steps[0].observation
    'xxxxxxxxxxxxxxxxxxxxxxxxxx\n[... 60 characters cut ...]\nxxxxxxxxxxxxxx'
    """
    steps = [
        replace(
            step,
            action=cut_short(step.action, max_field_chars),
            observation=cut_short(step.observation, max_field_chars),
            thought=cut_short(step.thought, max_field_chars),
            arguments=step.arguments if len(step.action) <= max_field_chars else {},
        )
        for step in trajectory.steps
    ]
    if len(steps) > max_steps:
        head = max_steps * 2 // 3
        gap = Step(thought=f"[... {len(steps) - max_steps:,} steps cut ...]")
        steps = [*steps[:head], gap, *steps[head - max_steps :]]
    kept = Trajectory(steps, answer=cut_short(trajectory.answer, 4 * max_field_chars))
    if len(kept.as_text()) <= max_chars or max_field_chars <= 100:
        return kept
    return capped(trajectory, max_field_chars=max_field_chars // 2, max_steps=max_steps, max_chars=max_chars)


Solution: TypeAlias = "str | Trajectory"


def check_solution(solution: object) -> Solution:
    """Check a solution: a text or a ``Trajectory``; a sequence of steps is turned into a trajectory.

    >>> check_solution([Step(action="look")]).steps[0].action
    'look'
    """
    if isinstance(solution, Trajectory):
        check_text(solution.as_text(), "solution", MAX_SOLUTION_CHARS)
        return solution
    if isinstance(solution, (list, tuple)):
        return check_solution(Trajectory(cast("Sequence[Step]", solution)))
    if not isinstance(solution, str):
        raise InvalidInput(f"a solution is a string, a Trajectory or a list of steps, not {type(solution).__name__}")
    return check_text(solution, "solution", MAX_SOLUTION_CHARS)


def solution_text(solution: Solution) -> str:
    """Render a solution as the text that is shown and compared."""
    return solution if isinstance(solution, str) else solution.as_text()


def gist(solution: Solution, chars: int) -> str:
    r"""Reduce a solution to the part that distinguishes it: the beginning of a text, or the actions of a trajectory.

    Observations are left out. If the actions are too long, the first and the last of them stay, since the end shows the result.

    >>> gist(Trajectory([Step(action="go to sink", observation="A sink. You see a cup."), Step(action="clean cup")]), 100)
    'go to sink\nclean cup'
    """
    if isinstance(solution, str):
        return solution[:chars]
    done = "\n".join([*(step.action or step.thought for step in solution.steps), *filter(None, [solution.answer])])
    half = chars // 2
    return done if len(done) <= chars else f"{done[: half - 1]}\n{done[-half:]}"
