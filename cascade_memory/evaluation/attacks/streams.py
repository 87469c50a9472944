"""The attacked streams: real texts whose solutions are labels that recur or, for each task, a procedure of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import ALONE, MATCHED, MISLED, PROCEDURES, Run
from cascade_memory.evaluation.bench.stage import Folders, best_embedder, catalogued
from cascade_memory.evaluation.solver import Attempt, SimulatedSolver
from cascade_memory.evaluation.stream import PrecomputedEmbedder

LIMIT = 1000  # tasks, if the run does not say it
AIMED_AT = 5  # labels
_ASIDE = 600  # tasks that nobody plays: attackers take their texts
_FEWEST = 60
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True)
class Attacked:
    """A stream in the order of a run: ``labels`` are the true labels, ``solutions`` the right solutions as cases store them.

    ``aside`` holds further texts with their labels. They resemble the tasks of the stream, but are not part of it.
    """

    queries: Sequence[str]
    labels: Sequence[str]
    solutions: Sequence[str]
    aside: Sequence[tuple[str, str]]
    embedder: PrecomputedEmbedder
    solver: SimulatedSolver
    label_of: Mapping[str, str]  # of the solutions

    def attempt(self, place: int, shown: str | None) -> Attempt:
        """Let the SIMULATED solver attempt the task at this place with the solution ``shown``; None: without a case.

        A made-up solution is always wrong.
        """
        told = None if shown is None else self.label_of.get(shown, shown)
        attempt = self.solver.solve(place, told)
        if attempt.success:
            return Attempt(True, self.solutions[place], attempt.fitting)
        return Attempt(False, shown if shown is not None and attempt.answer == told else attempt.answer, attempt.fitting)

    def aimed_at(self, seed: int, *, popular: bool) -> frozenset[str]:
        """Choose the labels at whose tasks an attack is aimed: the most frequent ones if ``popular``, otherwise random ones."""
        counts = Counter(self.labels)
        known = {label for _, label in self.aside}
        often = [label for label, _ in counts.most_common() if label in known]
        if popular:
            return frozenset(often[:AIMED_AT])
        rng = np.random.default_rng([seed, 31])
        return frozenset(often[i] for i in rng.permutation(len(often))[:AIMED_AT])


def attacked(run: Run, folders: Folders) -> Attacked:
    """Read the stream of a run, in the order of the run's seed."""
    texts, aside, embedder = _read(run.task.removesuffix(PROCEDURES), run.limit or LIMIT, folders)
    order = np.random.default_rng([run.seed, 7]).permutation(len(texts)).tolist()
    queries, labels = [texts[i][0] for i in order], [texts[i][1] for i in order]
    name = run.task.removesuffix(PROCEDURES)
    own = run.task.endswith(PROCEDURES)
    solutions = [_procedure(i, *one) for i, one in enumerate(zip(queries, labels, strict=True))] if own else labels
    return Attacked(
        queries=queries,
        labels=labels,
        solutions=solutions,
        aside=aside,
        embedder=embedder,
        solver=SimulatedSolver(labels, zero_shot=ALONE[name], misled=MISLED, matched=MATCHED, seed=run.seed),
        label_of=dict(zip(solutions, labels, strict=True)),
    )


def _procedure(number: int, query: str, label: str) -> str:
    """Write down how a task was solved, in words that no other task has."""
    return f"Note {number}: settled as {label}. It began with: {query[:_SHOWN_CHARS]}"


@lru_cache(maxsize=2)  # two streams take turns
def _read(task: str, limit: int, folders: Folders) -> tuple[list[tuple[str, str]], list[tuple[str, str]], PrecomputedEmbedder]:
    items = catalogued(task).items(folders.data)
    found = list(dict.fromkeys((item.query, item.solution) for item in items))
    if len(found) < _FEWEST:
        raise InvalidInput(f"the attacks need at least {_FEWEST} different tasks of {task}, and there are {len(found):,}")
    aside = min(_ASIDE, len(found) // 3)
    played = found[: min(limit, len(found) - aside)]
    return played, found[-aside:], PrecomputedEmbedder(best_embedder(), [query for query, _ in (*played, *found[-aside:])])
