"""A real language model that attempts tasks with recalled cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from cascade_memory import RecalledCase, Step, Trajectory, clean_text
from cascade_memory.cycle import Show, render, turns
from cascade_memory.domain import solution_text
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.answers import answer_in
from cascade_memory.evaluation.judging.labels import normal
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message, PromptTooLong
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.tasks.task import Item, Task


@runtime_checkable
class FindsAnswers(Protocol):
    """A task that can find the answer in a reply, to store it.

    For other tasks, the answer is what the reply has in a box (see ``judging.answers.answer_in``), or else the whole reply.
    """

    def answer(self, reply: str) -> str:
        """Return the answer."""
        ...


@runtime_checkable
class AsksQuestions(Protocol):
    """A task that writes its own questions; for other tasks, the query itself is the question."""

    def question(self, item: Item) -> str:
        """Write the question with the form that its answer must have."""
        ...


@runtime_checkable
class ShowsExamples(Protocol):
    """A task that shows the solutions of cases in the form in which a model must answer."""

    def example(self, solution: str) -> str:
        """Write a stored solution in the form in which a model must answer."""
        ...


@runtime_checkable
class HasTruths(Protocol):
    """A task some of whose labels list several right answers. For other tasks, the label is the right answer."""

    def truth(self, item: Item) -> str:
        """Return one right answer."""
        ...


def truths_of(task: Task, items: Sequence[Item]) -> list[str]:
    """Return a right answer to each task of a stream."""
    return [task.truth(item) if isinstance(task, HasTruths) else item.solution for item in items]


class ModelSolver:
    """Asks a model to solve a task with recalled cases; the task judges the reply.

    The prompt has the instruction, the cases, and the question. The cases are shown as fenced data or, with ``show="turns"``,
    as earlier turns of the conversation. A reward of 1 is a success; a prompt that is too long for the model is a failure. A
    case stores only the answer if the answer can be found in the reply. If the task reveals the truth after a success, the case
    stores the truth.
    """

    def __init__(self, task: Task, items: Sequence[Item], asking: Asking, *, show: Show = "text") -> None:
        self._task, self._items, self._asking = task, items, asking
        self._show: Show = show
        self._answer = task.answer if isinstance(task, FindsAnswers) else answer_in
        self._reveals = bool(getattr(task, "reveals_truth", False))

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream."""
        item = self._items[place]
        right = normal(item.solution)
        fitting = any(normal(solution_text(case.solution)) == right for case in cases) if cases else None
        try:
            reply = self._asking(messages_for(self._task, item, cases, self._show))
        except PromptTooLong:
            return Attempt(False, None, fitting)
        reward = self._task.reward(reply, item)
        if not 0.0 <= reward <= 1.0:
            raise InvalidInput(f"the task {self._task.name!r} rewards a reply with {reward!r}: it must be between 0 and 1")
        revealed = self._reveals and reward >= 1.0
        answer = clean_text(item.solution if revealed else self._answer(reply)).strip()  # without what the memory refuses
        return Attempt(reward >= 1.0, answer or None, fitting)


def messages_for(task: Task, item: Item, cases: Sequence[RecalledCase], show: Show = "text") -> list[Message]:
    """Build the messages for a task; with or without cases, the model is told the same about the task and its options.

    With ``show="turns"``, the query of each case is written in the same form as the question of the task.

    >>> class Sums:
    ...     name, instruction, max_steps = "sums", "Add.", 1
    >>> messages_for(Sums(), Item("1 + 1", "2", context="Add, modulo 7."), ())[0]
    {'role': 'system', 'content': 'Add, modulo 7.'}
    """
    if isinstance(task, ShowsExamples):
        cases = [case if isinstance(case.solution, Trajectory) else _shown(case, task) for case in cases]
    if isinstance(task, AsksQuestions):
        if show == "turns":
            cases = [replace(case, query=task.question(replace(item, query=case.query))) for case in cases]
        return prompt(item.context or task.instruction, task.question(item), cases, show)
    return prompt(item.context or task.instruction, item.query, cases, show)


def prompt(instruction: str, query: str, cases: Sequence[RecalledCase], show: Show = "text") -> list[Message]:
    """Build the messages for a model. A case that failed (in-context reinforcement learning) is shown as a wrong answer.

    >>> prompt("Add.", "1 + 1", ())
    [{'role': 'system', 'content': 'Add.'}, {'role': 'user', 'content': '1 + 1'}]
    """
    system: Message = {"role": "system", "content": instruction}
    if show == "turns":
        return [system, *turns(cases), {"role": "user", "content": query}]
    return [system, {"role": "user", "content": f"{render(cases)}{query}"}]


def as_answered(case: RecalledCase, write: Callable[[Step], str]) -> RecalledCase:
    """Write the steps of a case in the form in which the model must write its own, since a model copies what it sees."""
    if not isinstance(case.solution, Trajectory):
        return case
    written = "\n".join(filter(None, map(write, case.solution.steps)))
    return replace(case, solution=written or case.solution.as_text())


def _shown(case: RecalledCase, task: ShowsExamples) -> RecalledCase:
    return replace(case, solution=task.example(solution_text(case.solution)))
