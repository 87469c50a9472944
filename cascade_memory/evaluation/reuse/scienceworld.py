"""A solver for ScienceWorld without a language model: it solves a declared share alone, the rest by adapting a case.

A recalled experiment is replayed with its words mapped to the present task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.evaluation.environments.scienceworld import ScienceWorld, room_of
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.reuse.phrases import mapped_phrases, substituted
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.ports import Embedder

Alike = Callable[[str, str], float]  # similarity of the meanings of two names, at most 1
_VERBS = ("focus on", "pick up", "move", "use", "pour", "activate", "deactivate", "open", "close", "connect", "dunk", "mix")
_WAYS = ("open door", "go to", "teleport to", "look around")
_UNREPAIRED = ("connect", "wait", "drop")
_IDLE = frozenset(["in", "inventory", "the", "a", "baby", "adult", "egg", "containing", "and", "of"])
_ENOUGH = 0.25  # a less similar object is not tried: a wrong one can end the experiment
Strength = Literal["full", "map"]
_VERSION = "science-1"  # version of the agent: cached outcomes of other versions are not used


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the agent knows at the beginning: the task in words, what it sees, and what it carries."""

    task: str
    view: str
    inventory: str

    @property
    def text(self) -> str:
        """Join the parts to the query for the memory.

        >>> Experiment.of(Experiment("Find it.", "A hall.", "Nothing.").text).view
        'A hall.'
        """
        return f"{self.task}\n\n{self.view}\n\n{self.inventory}"

    @classmethod
    def of(cls, text: str) -> Experiment:
        """Parse what ``text`` returned."""
        task, _, rest = text.partition("\n\n")
        view, _, inventory = rest.rpartition("\n\n")
        return cls(task, view, inventory)


@dataclass(frozen=True, slots=True)
class Deed:
    """An action of an old trajectory, the room it was done in, and the view of that room."""

    room: str | None
    action: str
    view: str


def deeds(old: Experiment, trajectory: Trajectory) -> Iterator[Deed]:
    """Yield the actions of a trajectory, without walking between rooms."""
    room, view = room_of(old.view), old.view
    for step in trajectory.steps:
        if step.action.startswith(_WAYS):
            room, view = room_of(step.observation) or room, step.observation
        elif step.action:
            yield Deed(room, step.action, view)


class World(Protocol):
    """What an attempt needs of a ``ScienceWorld`` with a loaded experiment."""

    def act(self, action: str) -> str | None:
        """Perform an action and return the observation; None if the action is unknown."""
        ...

    def look(self) -> str:
        """Describe the room."""
        ...

    def possible(self) -> list[str]:
        """List all actions that are possible now."""
        ...

    @property
    def over(self) -> bool:
        """Whether the task is solved, or cannot be solved any more."""
        ...


class Replay:
    """One attempt: for each old action, teleport to its room and repeat it; if it is refused, try the most similar object.

    The two strengths of a ``ScienceAgent`` differ in ``repairs``: without it, no similar object is tried, and no thermometer is
    read (with it, the temperature decides which answer box is chosen).
    """

    def __init__(self, world: World, alike: Alike, *, new: Experiment, limit: int, repairs: bool) -> None:
        self._world, self._alike, self._new, self._limit, self._repairs = world, alike, new, limit, repairs
        self._room = room_of(new.view)
        self._steps: list[Step] = []
        self._renamed: dict[str, str] = {}  # names found by repairing; they are used from then on
        self._turned: dict[str, str] = {}  # replaces one answer box by the other after a measurement

    def play(self, old: Experiment, trajectory: Trajectory) -> Trajectory | None:
        """Play the attempt; return what was done, or None if nothing was."""
        phrases = mapped_phrases(old.task, self._new.task)
        for deed in deeds(old, trajectory):
            if self._ended:
                break
            self._redo(deed, phrases)
        if not self._ended:
            self._act("wait1")  # some experiments are judged only after a moment
        return Trajectory(self._steps) if self._steps else None

    @property
    def _ended(self) -> bool:
        return self._world.over or len(self._steps) >= self._limit

    def _redo(self, deed: Deed, phrases: dict[str, str]) -> None:
        room = substituted(deed.room, phrases) if deed.room else None
        if room and room != self._room:
            self._go(room)
        action = named(substituted(substituted(deed.action.lower(), phrases), self._renamed))
        if action.startswith("move"):
            action = substituted(action, self._turned)
        if self._ended or self._act(action) or self._elsewhere(deed, action):
            return
        if self._repairs and not self._ended:
            self._repair(deed, action, phrases)

    def _elsewhere(self, deed: Deed, action: str) -> bool:
        """Try the action in the original room; return whether it was done, or the attempt has ended.

        The mapping of words may have changed the name of the room to that of a room without the object.
        """
        here = self._room
        if not deed.room or not here or deed.room == here or action.startswith(_UNREPAIRED):
            return False
        self._go(deed.room)
        if self._ended or self._act(action):
            return True
        if not self._ended:
            self._go(here)
        return False

    def _repair(self, deed: Deed, action: str, phrases: dict[str, str]) -> None:
        verb, things = _parted(action)
        if not things or verb.startswith(_UNREPAIRED):
            return
        before = {**phrases, **self._renamed}
        _, old_things = _parted(deed.action)
        lines = [substituted(_line_about(thing, deed.view).lower(), before) for thing in old_things]
        found = self._nearest(verb, things, lines)
        if found is None:
            return
        for wanted, taken in zip(things, _parted(found)[1], strict=True):
            old, new = (" ".join(word for word in name.split() if word not in _IDLE) for name in (wanted, taken))
            if old and new and old != new:
                self._renamed[old.lower()] = new
        self._act(found)

    def _nearest(self, verb: str, things: Sequence[str], lines: Sequence[str]) -> str | None:
        view = self._world.look()
        best, best_score = None, 0.0
        known: dict[tuple[int, str], float] = {}
        for action in self._world.possible():
            other, others = _parted(action)
            if other != verb or len(others) != len(things):
                continue
            for i, (wanted, there) in enumerate(zip(things, others, strict=True)):
                if (i, there) not in known:
                    about = _overlap(_words(lines[i]), _words(_line_about(there, view))) if i < len(lines) and lines[i] else 0.0
                    known[i, there] = self._likeness(wanted, there) + 0.3 * about
            scores = [known[i, there] for i, there in enumerate(others)]
            if min(scores) >= _ENOUGH and sum(scores) / len(scores) > best_score + 1e-9:
                best, best_score = action, sum(scores) / len(scores)
        return best

    def _likeness(self, wanted: str, there: str) -> float:
        return float(wanted == there) + _overlap(_words(wanted), _words(there)) + 0.5 * self._alike(wanted, there)

    def _go(self, room: str) -> None:
        self._act(f"teleport to {room}")

    def _act(self, action: str) -> bool:
        observation = self._world.act(action)
        if observation is None:
            self._refused(action)
            return False
        if action.startswith("teleport"):
            view = self._world.look()
            self._room = room_of(view) or self._room
            observation = f"{observation}\n{view}"
        self._steps.append(Step(action=action, observation=observation))
        if self._repairs:
            self._measure(observation)
        return True

    def _refused(self, action: str) -> None:
        """Handle an action that the world does not know; here, it costs no step."""

    def _measure(self, observation: str) -> None:
        """Choose the answer box by the new measurement: the box in the case depends on what was measured in the case."""
        measured = re.search(r"temperature of (-?\d+(?:\.\d+)?)", observation)
        asked = re.search(r"above (-?\d+\.?\d*) .*?in the ([a-z ]+ box).*?below .*?in the ([a-z ]+ box)", self._new.task)
        if measured and asked:
            right, wrong = (asked[2], asked[3]) if float(measured[1]) > float(asked[1]) else (asked[3], asked[2])
            self._turned = {wrong: right}


def named(action: str) -> str:
    """Spell an action as the environment does.

    >>> named("focus on unknown substance b")
    'focus on unknown substance B'
    """
    return re.sub(r"unknown substance ([a-z])\b", lambda found: f"unknown substance {found[1].upper()}", action)


def _parted(action: str) -> tuple[str, list[str]]:
    """Split an action into the verb and its one or two objects."""
    for verb in _VERBS:
        if action.startswith(f"{verb} "):
            rest = action[len(verb) :].strip()
            between = " on " if verb == "use" else " to " if verb in ("move", "connect") else " into "
            return verb, [thing.strip() for thing in rest.split(between, 1)]
    return action, []


def _words(name: str) -> frozenset[str]:
    words = frozenset(re.findall(r"[a-z0-9\-]+", name.lower()))
    return words - _IDLE or words


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _line_about(thing: str, view: str) -> str:
    """Return the line of a view that names an object; it shows, for example, which flower pot holds a tree."""
    words = _words(thing)
    return next((line for line in view.split("\n") if words and words <= _words(line) | _IDLE), "")


class ScienceAgent:
    """REUSE agent, no language model: it replays the best recalled case with its words mapped to the new task.

    ``alone`` says which tasks it solves without a case, as an LLM solves some without memory. If the environment refuses an
    object, the strength "full" tries the most similar one; it also reads thermometers. The strength "map" does neither.
    """

    def __init__(
        self, tasks: Sequence[ScienceTask], *, alone: Sequence[bool], embedder: Embedder, outcomes: Path, strength: Strength
    ) -> None:
        self._tasks, self._alone, self._strength = tasks, alone, strength
        self._outcomes = Outcomes(outcomes)
        self._world: ScienceWorld | None = None  # started when the first outcome is unknown

        @lru_cache(maxsize=20_000)
        def vector(name: str) -> NDArray[np.float32]:
            return embedder.embed([name])[0]

        def alike(one: str, other: str) -> float:
            return float(vector(one) @ vector(other))

        self._alike = alike
        self._about = f"{_VERSION} {strength} {embedder.identity}"

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task with the first of the cases."""
        task = self._tasks[place]
        if self._alone[place]:
            return Attempt(True, task.solution, steps=len(task.solution.steps))
        if not cases or not isinstance(cases[0].solution, Trajectory):
            return Attempt(False, None, steps=0)
        outcome = self._replayed(task, cases[0].query, cases[0].solution)
        return Attempt(outcome.success, outcome.done, steps=len(outcome.done.steps) if outcome.done else 0)

    def _replayed(self, task: ScienceTask, query: str, solution: Trajectory) -> Outcome:
        depends_on = [self._about, task.place.kind, str(task.place.variation), query, solution.to_json()]
        known = self._outcomes.known(depends_on)
        if known is not None:
            return known
        if self._world is None:
            self._world = ScienceWorld()
        self._world.load(task.place)
        replay = Replay(
            self._world, self._alike, new=Experiment.of(task.text), limit=task.limit, repairs=self._strength == "full"
        )
        done = replay.play(Experiment.of(query), solution)
        outcome = Outcome(self._world.solved, done)
        self._outcomes.keep(depends_on, outcome)
        return outcome

    def close(self) -> None:
        """End the Java process."""
        self._outcomes.close()
        if self._world is not None:
            self._world.close()
