"""A solver for deep search without a language model: it plans a declared share of the questions alone, the rest by a case."""

from __future__ import annotations

import random
from collections.abc import Sequence

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.evaluation.reuse.search_plan import KNOWN, Plan, adapted, carry_out, understood
from cascade_memory.evaluation.reuse.search_reading import agrees
from cascade_memory.evaluation.search.local import LocalSearch
from cascade_memory.evaluation.search.tool import PassageTool
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.evaluation.tasks.task import Item
from cascade_memory.visible import shortened

MOST_CALLS = 5
_MOST_OBSERVED = 8_000  # characters of an observation that a case keeps


def can_plan(question: str, seed: int) -> bool:
    """Draw, always with the same result, whether a question can be planned without a case."""
    return random.Random(f"{seed} {question}").random() < KNOWN


class SearchAgent:
    """REUSE agent, no language model: it follows the plan of the best recalled case, adapted to the new question.

    If no case has a plan that fits, it plans the questions that the seed lets it plan, as an LLM plans some. For any other
    question it searches once, and answers from the first passage. A case stores the plan as the first thought, the searches,
    and the answer.
    """

    def __init__(self, items: Sequence[Item], passages: LocalSearch, *, seed: int) -> None:
        self._items, self._passages, self._seed = items, passages, seed
        self._tool = PassageTool(passages)

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a question with the first of the cases."""
        item = self._items[place]
        plan = adapted(_thought(cases), item.query)
        if plan is None and can_plan(item.query, self._seed):
            plan = understood(item.query)
        steps, answer = self._searched(item.query, plan)
        right = any(agrees(answer, one) for one in item.label)
        return Attempt(right, Trajectory(steps, answer=answer), steps=len(steps))

    def _searched(self, question: str, plan: Plan | None) -> tuple[list[Step], str]:
        steps: list[Step] = []
        way = carry_out(question, plan)
        try:
            query = next(way)
            while len(steps) < MOST_CALLS:
                observed = shortened(self._tool.search(query).text, _MOST_OBSERVED)
                thought = str(plan) if plan is not None and not steps else ""
                steps.append(Step(tool="search", arguments={"query": query}, observation=observed, thought=thought))
                query = way.send(self._passages.search(query))
        except StopIteration as end:
            return steps, str(end.value)
        return steps, "unknown"  # the searches are used up


def _thought(cases: Sequence[RecalledCase]) -> str:
    """Return the first thought of the best case; an empty text if there is none."""
    solution = cases[0].solution if cases else ""
    return solution.steps[0].thought if isinstance(solution, Trajectory) else ""
