"""A memory with something on every page of the inspector: a help desk's cases, episodes of all kinds, and hostile texts."""

from __future__ import annotations

import random
from pathlib import Path

from cascade_memory import CascadeMemory, Ranking, Step, Trajectory

KINDS = (
    ("card declined {}", "enable foreign transactions, then retry"),
    ("password reset {}", "send a reset link"),
    ("refund for order {}", "open the refund form, attach the receipt"),
    ("router {} offline", "restart the router, then run a line test"),
    ("printer {} jams", "pull the tray, clear the rollers"),
)
PLACES = ("in Lisbon", "since Monday", "of a customer", "on the third floor", "again", *(f"number {n}" for n in range(40)))
HOSTILE = "<script>alert(1)</script> pay \u202eevil\u202c [x](javascript:alert(1))"


def fill(folder: Path, episodes: int = 260) -> None:
    """Make the memory; the same one each time."""
    rng = random.Random(1)
    with CascadeMemory(folder, embedder="hashing", learn="inline", ranking=Ranking(holdout=0.15, explore=0.1)) as memory:
        for task, answer in KINDS:
            memory.add(task.format("of a customer"), answer, metadata={"desk": "first", "level": 1})
        memory.add("clean some apple and put it in the fridge", _walk(), source="env")
        memory.add(HOSTILE, f"{HOSTILE} {'long' * 400}", metadata={HOSTILE: HOSTILE})
        for number in range(episodes):
            task, answer = rng.choice(KINDS)
            asked = task.format(rng.choice(PLACES)) + rng.choice(["", "", ", please help", ", urgently"])
            recall = memory.recall(asked, thread_id=f"chat {number % 20}", metadata={"user": rng.choice(["ann", "bob"])})
            fits = bool(recall.cases) and recall.cases[0].solution == answer
            good, kind = fits or rng.random() < 0.35, rng.random()
            if kind < 0.85:
                source = rng.choice(["host", "host", "human", "env"])
                memory.reward(recall.episode_id, float(good), solution=answer if good else None, source=source)
            elif kind < 0.93:
                said = answer if rng.random() < 0.5 else "switch it off and on again"
                memory.reward(recall.episode_id, 1.0, solution=said, source="agent")
            elif kind < 0.96:
                memory.episodes.finish(recall.episode_id, solution="asked the customer to wait")
        for task, step in (("pay the refund of order 7", _mistake("refundd")), (HOSTILE, _mistake("nme", HOSTILE))):
            memory.reward(memory.acting(actor="ann").recall(task).episode_id, 0.0, solution=[step], source="env")
        memory.acting(actor="ann").warnings.advise(memory.warnings.all()[-1].id, "the table is called refunds")
        first, second = (case.id for case in memory.cases.page(search="card", limit=2).items)
        memory.acting(actor="ann").cases.pin(first)
        memory.acting(actor="bob").cases.hide(second)


def _mistake(table: str, more: str = "") -> Step:
    asked, said = f"SELECT * FROM {table} {more}", f"no such table: {table} {more}"
    return Step(tool="sql", arguments={"query": asked}, observation=said, failed=True)


def _walk() -> Trajectory:
    return Trajectory(
        [
            Step(thought="I need the apple first.", action="take apple 1", observation="You take the apple."),
            Step(tool="wash", arguments={"what": "apple 1"}, observation="The basin is occupied.", failed=True),
            Step(tool="wash", arguments={"what": "apple 1"}, observation="The apple is clean."),
            Step(action="put apple 1 in fridge 1", observation="The apple is in the fridge."),
        ],
        answer="The apple is in the fridge.",
    )
