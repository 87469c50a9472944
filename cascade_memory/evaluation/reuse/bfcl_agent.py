"""A solver for BFCL's multi-turn tasks without a language model: it solves a declared share alone, the rest by reuse."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_memory import RecalledCase
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.bfcl.calls import Turns, read_turns, write_turns
from cascade_memory.evaluation.environments.bfcl.tasks import BFCLTask
from cascade_memory.evaluation.environments.bfcl.world import play
from cascade_memory.evaluation.reuse.call_values import exchange
from cascade_memory.evaluation.solver import Attempt


class BFCLAgent:
    """REUSE agent, no language model: it makes the calls of the best recalled case, with the values of the new task.

    Each call stays in its turn, so a case does not help if it is about the same things but has its calls in other turns.
    ``alone`` says which tasks it solves without a case, as an LLM solves some without memory. The agent learns about the right
    calls only through the reward.
    """

    def __init__(self, tasks: Sequence[BFCLTask], *, alone: Sequence[bool]) -> None:
        self._tasks, self._alone = tasks, alone

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task with the first of the cases."""
        task = self._tasks[place]
        if self._alone[place]:
            return _judged(task, task.right)
        if not cases:
            return Attempt(False, None, steps=0)
        try:
            calls = adapted(cases[0].query, str(cases[0].solution), task)
        except InvalidInput:  # the case does not hold calls
            return Attempt(False, None, steps=0)
        return _judged(task, calls)


def adapted(query: str, solution: str, task: BFCLTask) -> Turns:
    """Adapt the calls that solved another task: replace the values that its text has by those of the new task.

    Calls of a turn that the new task does not have are left out; in its further turns, nothing is called.
    """
    turns = exchange(query.split("\n"), task.turns).turns(read_turns(solution))[: len(task.turns)]
    return [*turns, *([] for _ in task.turns[len(turns) :])]


def _judged(task: BFCLTask, calls: Turns) -> Attempt:
    played = play(task, [[str(call) for call in turn] for turn in calls])
    steps = sum(map(len, calls))
    return Attempt(played.success, write_turns(calls) if steps else None, steps=steps)
