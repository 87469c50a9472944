"""Tasks for a memory with a small reranker, and what it is asked to do."""

from __future__ import annotations

from inside import state_of

from cascade_memory import CascadeMemory

TASKS = [f"{a} the {b} {c}" for a in ("heat", "cool", "clean") for b in ("cup", "egg") for c in ("in fridge", "on desk")]


def fill(memory: CascadeMemory) -> None:
    """Add some cases."""
    memory.add([(task, task) for task in TASKS], progress=False)


def play(memory: CascadeMemory, n: int, start: int = 0) -> list[str]:
    """Recall and reward n times; return the ids of the chosen cases' tasks."""
    chosen = []
    for i in range(start, start + n):
        recall = memory.recall(TASKS[(7 * i) % len(TASKS)] + " task")
        chosen.append(recall.cases[0].query)
        memory.reward(recall.episode_id, float((i + len(chosen[-1])) % 3 > 0))
    return chosen


def scores(memory: CascadeMemory) -> list[float]:
    """Return the values of the candidates of one query."""
    recall = memory.recall("heat the egg in fridge")
    memory.episodes.discard(recall.episode_id)
    return [round(one.value, 5) for one in recall.explain().candidates]


def version(memory: CascadeMemory) -> int:
    """Return how many steps the encoder has taken."""
    return state_of(memory).encoder.version
