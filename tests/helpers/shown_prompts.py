"""What a model is shown for each task, as a text that a person can read. Write the fixtures anew after a change of wording:

python tests/helpers/shown_prompts.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dtlbench import ASKED, published

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.evaluation.model.model_solver import messages_for
from cascade_memory.evaluation.tasks.catalogue import task_named
from cascade_memory.evaluation.tasks.task import Item, Task

SHOWN = Path(__file__).parent.parent / "fixtures" / "prompts"


def case_of(item: Item, *, solution: str | None = None, failed: bool = False) -> RecalledCase:
    """Return a stored case that solves an item, or tried to."""
    return RecalledCase(
        id="1",
        query=item.query,
        solution=item.solution if solution is None else solution,
        metadata={"solved": False} if failed else {},
        similarity=0.9,
        utility=0.9,
        uncertainty=0.1,
        score=0.9,
    )


def shown(task: Task, items: list[Item]) -> str:
    """Write the messages for the last item: without a case, with one, and with one that failed."""
    case, asked = items[0], items[-1]
    wrong = case_of(items[0], solution=items[1].solution, failed=True)
    parts = {"without a case": [], "with a case": [case_of(case)], "with a case that failed (ICRL)": [wrong]}
    texts = [f"{'=' * 20} {task.name}, {name}" for name in parts]
    for place, cases in enumerate(parts.values()):
        for message in messages_for(task, asked, cases):
            texts[place] += f"\n\n[{message['role']}]\n{message['content']}"
    return "\n\n".join(texts) + "\n"


def main() -> None:
    """Write a file for each task."""
    SHOWN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = published(Path(folder))
        for name in ASKED:
            task = task_named(name)
            (SHOWN / f"{name}.txt").write_text(shown(task, task.items(data)), encoding="utf-8")
            getattr(task, "close", lambda: None)()
    sys.stdout.write(f"{len(ASKED)} prompts written to {SHOWN}\n")


if __name__ == "__main__":
    main()
