"""Reads the plan in a case (its operations, without the walking), and replaces its nouns by those of another task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cascade_memory import Trajectory
from cascade_memory.errors import InvalidInput

_TASK = "Your task is to: "
_NAME = r"[a-z]+ \d+"
OPERATION = re.compile(rf"(take|move|clean|heat|cool|use) ({_NAME})(?: (?:from|to|with) ({_NAME}))?")
# The words in the texts of tasks that are neither an object nor a receptacle.
_FILLERS = (
    "a an and at chilled clean cleaned cold cool cooled desklamp examine find heat heated hot in inside into it look on one "
    "place put some the them then to turn two under use using warm with"
)
_OTHERS = frozenset(_FILLERS.split())


@dataclass(frozen=True, slots=True)
class Request:
    """The content of a query: the receptacles in the room, the wanted object, and the kind of receptacle to put it in."""

    receptacles: tuple[str, ...]
    thing: str | None
    goal: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of a plan, without walking.

    ``receptacle`` is where the case found, put or treated the object; empty if the object was used where it was.
    """

    verb: str
    thing: str
    receptacle: str = ""


def kind(name: str) -> str:
    """Return the kind of an object or receptacle, without its number.

    >>> kind("drawer 3")
    'drawer'
    """
    return name.rsplit(" ", 1)[0]


def read_query(query: str) -> Request:
    """Parse the room and the task in a query.

    >>> read_query("You see a drawer 1, and a desk 1. Your task is to: put some pencil on desk.")
    Request(receptacles=('drawer 1', 'desk 1'), thing='pencil', goal='desk')
    """
    room, found, task = query.partition(_TASK)
    if not found:
        raise InvalidInput(f"a household task must contain {_TASK!r}, and this one does not: {query!r}")
    receptacles = tuple(dict.fromkeys(re.findall(rf"\ban? ({_NAME})\b", room)))
    kinds = {kind(one) for one in receptacles}
    words = re.findall(r"[a-z]+", task.lower())
    goal = next((word for word in reversed(words) if word in kinds), None)
    thing = next((word for word in words if word not in kinds and word not in _OTHERS), None)
    return Request(receptacles, thing, goal)


def operations(trajectory: Trajectory) -> list[Operation]:
    """Extract the operations of a trajectory, without walking and searching.

    >>> from cascade_memory.domain.trajectory import Step
    >>> actions = ["go to desk 1", "take pen 2 from desk 1", "go to drawer 1", "open drawer 1", "move pen 2 to drawer 1"]
    >>> [operation.verb for operation in operations(Trajectory([Step(action) for action in actions]))]
    ['take', 'move']
    """
    found = (OPERATION.fullmatch(step.action) for step in trajectory.steps)
    return [Operation(one[1], kind(one[2]), one[3] or "") for one in found if one]


def adapted(plan: Sequence[Operation], old: Request, new: Request) -> list[Operation]:
    """Replace the object and the goal of a plan by those of another task.

    >>> old, new = Request((), "pen", "drawer"), Request((), "fork", "shelf")
    >>> adapted([Operation("take", "pen", "desk 1"), Operation("move", "pen", "drawer 2")], old, new)
    [Operation(verb='take', thing='fork', receptacle='desk 1'), Operation(verb='move', thing='fork', receptacle='shelf 2')]
    """
    return [_adapted(one, old, new) for one in plan]


def _adapted(one: Operation, old: Request, new: Request) -> Operation:
    thing = new.thing if new.thing and one.thing == old.thing else one.thing
    receptacle = one.receptacle
    if one.verb == "move" and new.goal and old.goal and kind(receptacle) == old.goal:
        receptacle = f"{new.goal} {receptacle.rsplit(' ', 1)[1]}"
    return replace(one, thing=thing, receptacle=receptacle)
