"""Measures what it is worth that the ranker knows which model made a case, in a made world with two models.

``python examples/benchmarks/models_beside_each_other.py`` prints the success of all tasks and of the second half, as means of
five seeds. The two models ask in turn at random, or one is exchanged for the other after half of the tasks. A task is of one of
40 kinds, and solved alone three times in ten. A case of the right kind raises this to 0.9. For the kinds in which the models
differ, a case of the other model lowers it to 0.2. A case of another kind lowers it to 0.25.
"""

from __future__ import annotations

import random

import numpy as np

from cascade_memory import CascadeMemory

TASKS, KINDS, SEEDS = 600, 40, range(5)
ALONE, RIGHT, OTHER_MODEL, WRONG = 0.3, 0.9, 0.2, 0.25
MODELS = ("small-1", "large-2")
WORDS = [f"w{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
# How the memory learns which model asks: from the reward alone, also from the recall, from a filter, or from its last answer.
WAYS = ("reward", "recall", "filter", "answer")


def play(differ: float, way: str, *, exchanged: bool, seed: int, tasks: int = TASKS) -> list[bool]:
    """Return which tasks were solved; ``differ`` is the share of kinds in which a case of the other model does harm."""
    rng = random.Random(seed)
    kinds = [rng.sample(WORDS, 4) for _ in range(KINDS)]
    own = set(rng.sample(range(KINDS), round(differ * KINDS)))
    solved: list[bool] = []
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        for place in range(tasks):
            kind, model = rng.randrange(KINDS), rng.choice(MODELS)
            model = MODELS[place >= tasks // 2] if exchanged else model
            task = " ".join(rng.sample(kinds[kind], 3) + rng.sample(WORDS, 2))
            luck, chance, about = rng.random(), ALONE, {"model": model}
            recall = memory.recall(task, metadata=about if way == "recall" else None, where=about if way == "filter" else None)
            for case in recall.cases:
                fits, same = case.solution.startswith(f"kind {kind} "), case.metadata["model"] == model
                chance = WRONG if not fits else RIGHT if same or kind not in own else OTHER_MODEL
            solved.append(luck < chance)
            if way == "answer":
                memory.models.answered(recall.episode_id, model)
            solution = f"kind {kind} of {model if kind in own else 'any model'}"
            memory.reward(recall.episode_id, float(solved[-1]), solution=solution, metadata=None if way == "answer" else about)
    return solved


def main() -> None:
    """Print a line for each world and way."""
    for exchanged in (False, True):
        for differ in (0.0, 0.5, 1.0):
            for way in WAYS:
                rows = np.array([play(differ, way, exchanged=exchanged, seed=seed) for seed in SEEDS])
                asks = "exchanged" if exchanged else "in turn"
                print(f"{asks}, {differ:.0%} differ, {way}: {rows.mean():.3f} / {rows[:, TASKS // 2 :].mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
