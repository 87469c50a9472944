"""A human in the loop, as in the paper's supplement: one who revises every solution, or is asked if no case seems to fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cascade_memory.domain import Candidate
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.stage import Stage
from cascade_memory.evaluation.stream import Attempt, Step, at_once, play
from cascade_memory.memory import Memory

BUDGET = 10  # the human may be asked about one task in ten
QUEUE, PERCENTILE = 16, 10

_METRICS: dict[str, Callable[[Candidate], float]] = {
    "Explore": lambda one: one.uncertainty,
    "Exploit": lambda one: one.value,
    "UCB": lambda one: one.score,
}


@dataclass(frozen=True, slots=True)
class Human:
    """A method that a human helps with right solutions: after each attempt or, with ``asked_by``, instead of some attempts."""

    method: str
    asked_by: str | None = None  # the metric that decides when to ask; None: the human revises every solution


HUMAN = {
    **{f"{method} + revision": Human(method) for method in ("similarity", "NP-CBR", "Neural-LinLogUCB", "CASCADE")},
    **{
        f"{method} + discovery by {metric}": Human(method, metric)
        for method in ("Neural-LinLogUCB", "CASCADE")
        for metric in ("Random", *_METRICS)
    },
}


class Discovery:
    """Decides when to ask the human: if the highest value of a metric among the candidates is below a threshold.

    The threshold is the 10th percentile of the highest values of the last 16 recalls that had candidates. Before there are 16
    values, the human is not asked. The metric "Random" ignores the candidates, and asks with a probability of a tenth. At most
    a tenth of the tasks is asked about.

    >>> discovery = Discovery("UCB", n=1000, seed=0)
    >>> [discovery.asks_at(value) for value in range(16)] == [False] * 16
    True
    >>> discovery.asks_at(1.4), discovery.asks_at(1.6)  # the percentile: 1.5 of 0 to 15; then 1.7 of 1 to 15 and 1.4
    (True, True)
    """

    def __init__(self, metric: str, n: int, seed: int) -> None:
        self._metric = metric
        self._left = n // BUDGET
        self._rng = np.random.default_rng([seed, 5])
        self._queue: deque[float] = deque(maxlen=QUEUE)

    def asks(self, candidates: Sequence[Candidate]) -> bool:
        """Return whether to ask the human instead of attempting the task for which these candidates were found."""
        if self._metric == "Random":
            return self._spend(bool(self._rng.random() < 1 / BUDGET))
        values = [_METRICS[self._metric](one) for one in candidates]
        return bool(values) and self.asks_at(max(values))

    def asks_at(self, value: float) -> bool:
        """Return whether to ask the human if this is the highest value; it then joins the last 16 values."""
        below = len(self._queue) == QUEUE and value < float(np.percentile(self._queue, PERCENTILE))
        self._queue.append(value)
        return self._spend(below)

    def _spend(self, wanted: bool) -> bool:
        asked = wanted and self._left > 0
        self._left -= asked
        return asked


class HelpedPlay:
    """Plays the tasks of a stage (``stage.Stage``) with the help of a simulated human, who answers with the label."""

    def __init__(self, human: Human, stage: Stage, memory: Memory, seed: int) -> None:
        if stage.solutions is None:
            raise InvalidInput("a simulated human needs known solutions, which environments do not have")
        self._human, self._stage, self._memory, self._truths = human, stage, memory, stage.solutions
        self._discovery = None if human.asked_by is None else Discovery(human.asked_by, len(stage.queries), seed)
        self._asked: list[bool] = []
        self._advantage: list[bool] = []
        self._success: list[bool] = []

    def __call__(self, query: str, place: int) -> Step:
        """Play the task at this place of the stream, with the human's help if it is needed."""
        if self._discovery is None:
            step = play(self._memory, query, self._stage.solver, place, self._teach)
        else:
            step = self._discovered(query, place, self._discovery)
        self._success.append(step.attempt.success)
        return step

    def _teach(self, memory: Memory, episode_id: str, place: int, attempt: Attempt) -> None:
        """Let the memory learn from the outcome, and store the right solution of the task, whether or not it was found."""
        truth = self._truths[place]
        at_once(memory, episode_id, place, replace(attempt, answer=truth) if attempt.success else attempt)
        if not attempt.success:
            memory.add(self._stage.queries[place], truth)

    def _discovered(self, query: str, place: int, discovery: Discovery) -> Step:
        recall = self._memory.recall(query)
        asked = discovery.asks(recall.explain().candidates)
        attempt = self._stage.solver.attempt(place, recall.cases)
        self._asked.append(asked)
        if not asked:
            at_once(self._memory, recall.episode_id, place, attempt)
            return Step(attempt, shown=bool(recall.cases))
        self._advantage.append(not attempt.success)  # whether the attempt would have failed
        # It learns from the attempt that the human replaced, as in the authors' code.
        self._teach(self._memory, recall.episode_id, place, attempt)
        return Step(Attempt(True, self._truths[place]), shown=False)

    def account(self) -> dict[str, Any]:
        """Return the columns that a human adds to a row; none if the human revises every solution.

        ``asked`` has a character per task: whether the human was asked about it. ``advantage`` is the counterfactual discovery
        advantage: of the tasks that the human was asked about, the share that would have failed otherwise. The row's ``rate``
        counts the tasks asked about as solved; ``rate_unasked`` leaves them out.
        """
        if self._discovery is None:
            return {}
        left = [success for success, asked in zip(self._success, self._asked, strict=True) if not asked]
        return {
            "asked": "".join("01"[one] for one in self._asked),
            "advantage": float(np.mean(self._advantage)) if self._advantage else None,
            "rate_unasked": float(np.mean(left)),
        }
