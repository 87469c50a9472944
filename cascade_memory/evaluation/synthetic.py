"""A stream of synthetic support tickets in which the case with the most similar wording is often wrong, and a demonstration.

``cascade-memory bench demo`` compares no memory, similarity and CASCADE on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascade_memory import CascadeMemory
from cascade_memory.encoders import HashingEmbedder, default_embedder, is_installed
from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver, play
from cascade_memory.looks import Curve, Panel, figure_of, looks, moving_mean, window_for
from cascade_memory.memory import Memory

_PRODUCTS = ("kettle", "router", "printer", "drill", "headset", "thermostat", "scanner", "blender", "camera", "lamp")
_OPENINGS = (
    "Hello, I bought the {product} in {place} last {month} and",
    "Dear team, my {product} from the {place} shop:",
    "Second message about the {product} ({place}, {month}):",
    "My neighbour in {place} gave me a {product} and",
)
_PLACES = ("Lisbon", "Oslo", "Turin", "Graz", "Cork", "Ghent", "Porto", "Malmö")
_MONTHS = ("March", "April", "June", "August", "October")
_CLOSINGS = ("Please advise.", "What should I do?", "Thanks for a quick answer!", "I have the receipt.")
# Each problem has several wordings that share few words; the rest of a ticket has nothing to do with the problem.
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "replace the fuse": ("it is completely dead", "nothing lights up at all", "there is no sign of life"),
    "update the firmware": ("it restarts by itself", "it keeps rebooting every hour", "it goes off and on again"),
    "clean the contacts": ("it works only when shaken", "the connection comes and goes", "I must wiggle the plug"),
    "descale it": ("a white crust has formed", "chalk comes off inside", "there are limestone flakes"),
    "send a refund": ("I do not want it any more", "I would like my money back", "I wish to return it"),
    "exchange the unit": ("the housing arrived cracked", "the shell was broken on delivery", "it came with a dent"),
    "reset the password": ("it refuses my login", "I am locked out of it", "it does not accept my code"),
    "ship the missing part": ("a screw set was not in the box", "one piece is absent", "the cable is not included"),
    "tighten the hinge": ("it wobbles", "the lid hangs loose", "it feels shaky in the middle"),
    "replace the filter": ("it smells of dust", "the air from it is stale", "there is a burnt odour"),
    "recalibrate the sensor": ("the readings are off", "it shows wrong values", "the numbers are not right"),
    "oil the bearing": ("it squeals", "a high noise comes from it", "it makes a scratching sound"),
}
ZERO_SHOT, MISLED = 0.45, 0.5
CONTENDERS = ("no memory", "similarity", "CASCADE")


@dataclass(frozen=True, slots=True)
class Task:
    """A query and its right solution."""

    query: str
    solution: str


def tickets(n: int, seed: int = 0) -> list[Task]:
    """Generate a stream of tickets.

    >>> tickets(1)[0].solution in _PROBLEMS
    True
    """
    rng = np.random.default_rng(seed)

    def pick(options: tuple[str, ...]) -> str:
        return options[int(rng.integers(len(options)))]

    stream: list[Task] = []
    for _ in range(n):
        solution = pick(tuple(_PROBLEMS))
        opening = pick(_OPENINGS).format(product=pick(_PRODUCTS), place=pick(_PLACES), month=pick(_MONTHS))
        stream.append(Task(f"{opening} {pick(_PROBLEMS[solution])}. {pick(_CLOSINGS)}", solution))
    return stream


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The success of each contender on each task."""

    successes: dict[str, list[bool]]
    embedder: str

    def rates(self) -> dict[str, tuple[float, float]]:
        """Compute for each contender its success rate over all tasks and over the last fifth."""
        return {
            name: (float(np.mean(steps)), float(np.mean(steps[-max(1, len(steps) // 5) :])))
            for name, steps in self.successes.items()
        }


def run_demo(n: int, seed: int, report: Callable[[int, dict[str, list[bool]]], None]) -> DemoResult:
    """Play the stream; ``report`` is called after every task with the successes so far."""
    stream = tickets(n, seed)
    embedder = default_embedder() if is_installed() else HashingEmbedder()
    known = PrecomputedEmbedder(embedder, [task.query for task in stream])
    solver = SimulatedSolver([task.solution for task in stream], zero_shot=ZERO_SHOT, misled=MISLED, seed=seed)
    memories: dict[str, Memory | None] = {
        "no memory": None,
        "similarity": CascadeMemory(embedder=known, ranker="similarity", learn="inline"),
        "CASCADE": CascadeMemory(embedder=known, learn="inline"),
    }
    successes: dict[str, list[bool]] = {name: [] for name in CONTENDERS}
    for i, task in enumerate(stream):
        for name, memory in memories.items():
            successes[name].append(play(memory, task.query, solver, i).attempt.success)
        report(i + 1, successes)
    for memory in memories.values():
        if memory is not None:
            memory.close()
    return DemoResult(successes=successes, embedder=embedder.identity)


def plot_demo(result: DemoResult, target: Path) -> None:
    """Plot success over tasks into a file."""
    look = looks(CONTENDERS)
    curves: list[Curve] = []
    for name, steps in result.successes.items():
        window = window_for(max(10, len(steps) // 6), len(steps))
        means = moving_mean([float(one) for one in steps], window)
        curves.append(Curve(name, [(float(place), mean) for place, mean in enumerate(means, window)], look[name]))
    ends = ", ".join(f"{curve.name} {100 * curve.points[-1][1]:.0f} %" for curve in curves)
    panel = Panel("Success on synthetic tickets, SIMULATED solver", "task", curves, f"At the end: {ends}.", shares=True)
    figure_of([panel], "the plot", width=5.6).savefig(target, dpi=150)
