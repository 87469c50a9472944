"""Predicts the form of a task's solution from the tasks and the solutions of the candidates."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import Rarity, word_terms

_RIDGE = 0.1  # how much of a likeness between tasks is taken for chance


class ExpectedForm:
    """Which solution has the form that a task calls for, as tasks and solutions of other cases tell.

    The form of a text are the words, and the pairs of adjacent words, that are common among such texts. From the forms of the
    candidates' tasks a kernel ridge regression predicts the form of the solution: a candidate counts the more the more its task
    has in common with the new one, and less if other candidates say the same. So what follows from "the three largest" is
    learned from all candidates that have these words, and not from the most similar one alone. Nothing is fitted in advance:
    the regression is over the candidates of one recall, so it forgets what is deleted.

    >>> form = ExpectedForm()
    >>> tasks = ["count the cups", "count the red lamps", "list the cups by size", "list the lamps by size"]
    >>> solutions = ["SELECT COUNT(cup)", "SELECT COUNT(lamp)", "SELECT cup ORDER BY size", "SELECT lamp ORDER BY size"]
    >>> form.add(tasks, solutions)
    >>> sorted(form.likeness("list the red cups by size", tasks, solutions).argsort()[2:].tolist())
    [2, 3]
    """

    def __init__(self) -> None:
        phrases = functools.partial(word_terms, pairs=True)
        self._tasks, self._solutions = Rarity(phrases), Rarity(phrases)

    def add(self, tasks: Sequence[str], solutions: Sequence[str]) -> None:
        """Count the words of further tasks and their solutions."""
        self._tasks.add(tasks)
        self._solutions.add(solutions)

    def likeness(self, task: str, tasks: Sequence[str], solutions: Sequence[str]) -> NDArray[np.float32]:
        """Return for each case how much its solution has of the predicted form: the cosine of both."""
        of_task, *_ = rows = self._tasks.common_rows([task, *tasks])
        known, forms = rows[1:], self._solutions.common_rows(solutions)
        mean = forms.mean(axis=0)
        counts = np.linalg.solve(known @ known.T + np.float32(_RIDGE) * np.eye(len(known), dtype=np.float32), known @ of_task)
        predicted = counts @ (forms - mean) + mean
        return np.asarray(forms @ (predicted / max(float(np.linalg.norm(predicted)), 1e-9)), np.float32)
