"""What the tests of warnings share: an agent that makes a mistake, and one that is about to repeat it."""

from __future__ import annotations

from typing import Any

from cascade_memory import Advice, CascadeMemory, Step

TASK = "list the names of all customers"
MISTAKE = Step(tool="sql", arguments={"q": "SELECT nme FROM t"}, observation="no such column: nme", failed=True)
CALL: dict[str, Any] = {"tool": "sql", "arguments": {"q": "SELECT nme, age FROM customers"}}
OTHER: dict[str, Any] = {"tool": "sql", "arguments": {"q": "SELECT name FROM customers"}}


def fail(memory: CascadeMemory, task: str = TASK, *steps: Step, source: str = "env", **options: Any) -> str:
    """Let a run fail at a mistake; return its episode."""
    memory = memory.acting(actor=options.pop("actor", None))
    recall = memory.recall(task)
    memory.reward(recall.episode_id, 0.0, solution=list(steps or (MISTAKE,)), source=source, **options)
    return recall.episode_id


def mistaken(column: str, *, seen: str | None = None) -> Step:
    """Return a mistake of its own."""
    said = f"no such column: {column}" if seen is None else seen
    return Step(tool="sql", arguments={"q": f"SELECT {column} FROM t"}, observation=said, failed=True)


def about_to(memory: CascadeMemory, task: str = TASK, tries: int = 60, **call: Any) -> Advice | None:
    """Let agents be about to do something, each in an episode of its own, until one is warned; None if none is."""
    for _ in range(tries):
        advice = memory.warnings.check(memory.recall(task).episode_id, **(call or CALL))
        if advice is not None:
            return advice
    return None
