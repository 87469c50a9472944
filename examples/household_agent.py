"""An agent in a text world, with and without a memory. The world is small and deterministic; the "agent" is SCRIPTED.

    python examples/household_agent.py

The agent copies the plan of the case that it is shown, and puts in the object and the place of its own task. Without a case it
tries a plan at random. The memory stores trajectories: the actions and what the world answered. The words of a task mislead:
"put a hot mug in the desk" is closest to "put a cold mug in the desk", but needs another plan.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from cascade_memory import CascadeMemory, Ranking, Step, Trajectory

Task = tuple[str, str, str, str]  # kind, thing, place, query
Solution = str | Trajectory

PLANS = {
    "heat": ["take {thing}", "open microwave", "microwave {thing}", "put {thing} in {place}"],
    "clean": ["take {thing}", "go to sink", "rinse {thing}", "put {thing} in {place}"],
    "cool": ["take {thing}", "open fridge", "chill {thing}", "put {thing} in {place}"],
    "look at": ["take {thing}", "go to {place}", "switch on lamp"],
}
WORDS = {  # several wordings of each kind of task; the right plan depends only on the kind
    "heat": [
        "heat some {thing} and put it in the {place}",
        "put a hot {thing} in the {place}",
        "warm up a {thing} for the {place}",
    ],
    "clean": [
        "clean some {thing} and put it in the {place}",
        "put a washed {thing} in the {place}",
        "rinse the {thing} for the {place}",
    ],
    "cool": [
        "cool some {thing} and put it in the {place}",
        "put a cold {thing} in the {place}",
        "chill a {thing} for the {place}",
    ],
    "look at": ["look at the {thing} under the {place} lamp", "examine a {thing} by the {place} lamp"],
}
THINGS = ["mug", "apple", "potato", "plate", "egg", "tomato", "pan", "bowl"]
PLACES = ["cabinet", "drawer", "shelf", "desk", "counter"]


class World:
    """Holds the plan that a task needs, and answers after every action whether it had an effect."""

    def __init__(self, kind: str, thing: str, place: str) -> None:
        self.kind = kind
        self._left = [step.format(thing=thing, place=place) for step in PLANS[kind]]

    def act(self, action: str) -> str:
        """Carry out an action, and return what the agent sees."""
        if self._left and action == self._left[0]:
            self._left.pop(0)
            return "done" if self._left else "done; the task is solved"
        return "nothing happens"

    @property
    def solved(self) -> bool:
        """True if the whole plan was carried out."""
        return not self._left


def scripted_agent(world: World, thing: str, place: str, plan: list[str]) -> Trajectory:
    """Carry out a plan, and return the trajectory: what was done and what happened."""
    actions = [step.format(thing=thing, place=place) for step in plan]
    return Trajectory([Step(action=action, observation=world.act(action)) for action in actions])


def plan_of(case: Trajectory) -> list[str]:
    """Return the plan of a case: its actions, with blanks in place of the object and the place."""
    blanks = {**dict.fromkeys(THINGS, "{thing}"), **dict.fromkeys(PLACES, "{place}")}
    return [" ".join(blanks.get(word, word) for word in step.action.split()) for step in case.steps]


class SamePlan:
    """A matcher: two trajectories agree if their plans do, even with other objects. So a success teaches about both."""

    def key(self, solution: Solution) -> str:
        """Return the plan as text."""
        return " / ".join(plan_of(solution)) if isinstance(solution, Trajectory) else solution

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> list[float]:
        """Return 1 for the same plan, 0 for another."""
        return [float(self.key(one) == self.key(verified)) for one in stored]


def play(tasks: list[Task], memory: CascadeMemory | None) -> list[bool]:
    """Let the agent do all tasks; return for each whether it was solved."""
    rng = random.Random(1)
    solved = []
    for kind, thing, place, query in tasks:
        world, guess = World(kind, thing, place), rng.choice(list(PLANS.values()))
        if memory is None:
            scripted_agent(world, thing, place, guess)
        else:
            with memory.episode(query) as episode:
                plan = plan_of(episode.cases[0].solution) if episode.cases else guess
                episode.solution = scripted_agent(world, thing, place, plan)
                episode.reward(world.solved)
        solved.append(world.solved)
    return solved


def main() -> None:
    """Play the same 300 tasks without a memory, with the most similar case, and with a memory that learns."""
    rng = random.Random(0)
    tasks: list[Task] = []
    for _ in range(300):
        kind, thing, place = rng.choice(list(PLANS)), rng.choice(THINGS), rng.choice(PLACES)
        tasks.append((kind, thing, place, rng.choice(WORDS[kind]).format(thing=thing, place=place)))

    print("SCRIPTED agent, 300 tasks, solved in each fifth:")
    show("no memory", play(tasks, None))
    with CascadeMemory(embedder="hashing", ranker="similarity", learn="inline", ranking=Ranking(matcher=SamePlan())) as memory:
        show("most similar case", play(tasks, memory))
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(matcher=SamePlan())) as memory:
        show("CASCADE", play(tasks, memory))
        print(f"\n{memory!r}\n")
        print(memory.recall("put a hot apple in the shelf").explain())


def show(name: str, solved: list[bool]) -> None:
    """Print the share of solved tasks in each fifth."""
    fifth = len(solved) // 5
    print(f"  {name:18}", *(f"{100 * sum(solved[i : i + fifth]) // fifth:3d} %" for i in range(0, len(solved), fifth)))


if __name__ == "__main__":
    main()
