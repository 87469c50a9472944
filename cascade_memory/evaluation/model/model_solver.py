"""A real language model that attempts tasks with recalled cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from cascade_memory.cycle.reuse import render
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.validation import clean_text
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.answers import answer_in
from cascade_memory.evaluation.judging.labels import normal
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.evaluation.tasks.task import Item, Task


@runtime_checkable
class FindsAnswers(Protocol):
    """A task that can find the answer in a reply, to store it. For other tasks, a box or the whole reply is the answer."""

    def answer(self, reply: str) -> str:
        """Return the answer."""
        ...


class ModelSolver:
    """Asks a model with the task's instruction, the cases as fenced data, and the task; the task judges the reply.

    A reward of 1 is a success. A case stores only the answer, if it can be found in the reply.
    """

    def __init__(self, task: Task, items: Sequence[Item], asking: Asking) -> None:
        self._task, self._items, self._asking = task, items, asking
        self._answer = task.answer if isinstance(task, FindsAnswers) else answer_in

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream."""
        item = self._items[place]
        reply = self._asking(prompt(self._task.instruction, item.query, cases))
        reward = self._task.reward(reply, item)
        if not 0.0 <= reward <= 1.0:
            raise InvalidInput(f"the task {self._task.name!r} rewards a reply with {reward!r}: it must be between 0 and 1")
        right = normal(item.solution)
        fitting = any(normal(solution_text(case.solution)) == right for case in cases) if cases else None
        answer = clean_text(self._answer(reply)).strip()  # removes characters that the memory refuses
        return Attempt(reward >= 1.0, answer or None, fitting)


def prompt(instruction: str, query: str, cases: Sequence[RecalledCase]) -> list[Message]:
    """Build the messages for a model. A failed case (shown in in-context reinforcement learning) is marked as wrong.

    >>> prompt("Add.", "1 + 1", ())
    [{'role': 'system', 'content': 'Add.'}, {'role': 'user', 'content': '1 + 1'}]
    """
    shown = [_marked(case) if case.metadata.get("solved") is False else case for case in cases]
    return [{"role": "system", "content": instruction}, {"role": "user", "content": f"{render(shown)}{query}"}]


def _marked(case: RecalledCase) -> RecalledCase:
    return replace(case, solution=f"{solution_text(case.solution)}\n(This solution was wrong.)")
