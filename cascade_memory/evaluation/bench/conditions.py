"""Conditions that make a stream harder to learn from: late, missing or false rewards, and wrong cases in the memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.stream import Attempt, at_once
from cascade_memory.memory import Memory

WrongCases: TypeAlias = Mapping[int, Sequence[tuple[str, str]]]  # task -> the queries and solutions that are stored before it

CLEAN = "clean"
# The possible conditions, with the default number of each.
REWARDS = {"late": 100.0, "missing": 0.5, "flipped": 0.2}
WRONG_CASES = {"start": 0.05, "along": 0.05}

_REWARDS_SAY = {"late": "rewards {} tasks late", "missing": "{} of the rewards missing", "flipped": "{} of the rewards false"}
_WRONG_CASES_SAY = {"start": "{} wrong cases at the start", "along": "{} wrong cases along the stream"}


def rewards_named(text: str) -> str:
    """Return the text by which rows name a way in which rewards arrive; it is empty if each comes at once and is true.

    >>> rewards_named("late"), rewards_named("missing=0.50"), rewards_named("clean")
    ('late=100', 'missing=0.5', '')
    """
    name, number = _parsed(text, REWARDS)
    right = number >= 1 and number == int(number) if name == "late" else 0 < number <= 1
    if name and not right:
        raise InvalidInput(
            f"rewards must be late by a whole number of tasks (late=100), or missing or flipped for a share of the tasks "
            f"(missing=0.5), not {text!r}"
        )
    return f"{name}={number:g}" if name else ""


def wrong_cases_named(text: str) -> str:
    """Return the text by which rows name a kind of wrong cases; it is empty if there are none.

    >>> wrong_cases_named("start=500"), wrong_cases_named("along"), wrong_cases_named("clean")
    ('start=500', 'along=0.05', '')
    """
    name, number = _parsed(text, WRONG_CASES)
    if name and not (0 < number < 1 or (number >= 1 and number == int(number))):
        raise InvalidInput(f"wrong cases must be a share of the tasks (below 1) or a whole number of cases, not {text!r}")
    return f"{name}={number:g}" if name else ""


def _parsed(text: str, usual: Mapping[str, float]) -> tuple[str, float]:
    if text in ("", CLEAN):
        return "", 0.0
    name, _, number = text.partition("=")
    try:
        found = float(number) if number else usual[name]
        if name in usual and np.isfinite(found):
            return name, found
    except (KeyError, ValueError):
        pass
    known = ", ".join(f"{one}={number:g}" for one, number in usual.items())
    raise InvalidInput(f"{text!r} is none of {CLEAN}, {known}; the numbers may differ")


def conditions_of(row: Mapping[str, Any]) -> str:
    """Describe in words the conditions that made the run of a row harder; the text is empty if there were none.

    >>> conditions_of({"rewards": "missing=0.5", "wrong_cases": "start=500", "misled": 0.25})
    '50 % of the rewards missing, 500 wrong cases at the start, a misleading case spoils 25 %'
    """
    parts: list[str] = []
    for column, sentences in (("rewards", _REWARDS_SAY), ("wrong_cases", _WRONG_CASES_SAY)):
        name, _, number = str(row.get(column) or "").partition("=")
        if name:
            value = float(number)
            parts.append(sentences[name].format(f"{value:g}" if value >= 1 and name != "missing" else f"{100 * value:g} %"))
    if row.get("misled") is not None:
        parts.append(f"a misleading case spoils {100 * row['misled']:g} %")
    return ", ".join(parts)


def by_conditions(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by their conditions, since figures under different conditions cannot be compared.

    >>> list(by_conditions([{"rewards": ""}, {"rewards": "late=100"}, {}]))
    ['', 'rewards 100 tasks late']
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(conditions_of(row), []).append(row)
    return found


class Rewards:
    """Passes the rewards of one run to its memory as the run's ``rewards`` says; the seed decides which are missing or false.

    ``learned[i]`` lists the tasks whose rewards came after task ``i``, each with what its reward said: True if it said that the
    task was solved. A reward that is due after the last task never comes.
    """

    def __init__(self, kind: str, n: int, seed: int) -> None:
        name, _, number = kind.partition("=")
        rng = np.random.default_rng([seed, 11])
        draws = {"flipped": rng.random(n), "missing": rng.random(n)}
        self._false, self._missing = (draws[one] < (float(number) if name == one else 0.0) for one in ("flipped", "missing"))
        self._delay = int(number) if name == "late" else 0
        self._late: deque[tuple[str, int, Attempt]] = deque()
        self.learned: list[list[tuple[int, bool]]] = [[] for _ in range(n)]

    def __call__(self, memory: Memory, episode_id: str, place: int, attempt: Attempt) -> None:
        """Take the outcome of the task at ``place``, and give the memory the rewards that are due after this task."""
        if not self._missing[place]:
            self._late.append((episode_id, place, attempt))
        while len(self._late) > self._delay:
            episode, task, tried = self._late.popleft()
            says_solved = tried.success != bool(self._false[task])
            at_once(memory, episode, task, tried, reported=says_solved)
            self.learned[place].append((task, says_solved))


def wrong_cases(kind: str, queries: Sequence[str], solutions: Sequence[str], seed: int) -> WrongCases:
    """Make wrong cases: each joins the query of one task with a different solution, which is that of another task.

    ``kind`` says how many, and whether they are stored at the start or along the stream; see ``plan.Run.wrong_cases``. The
    result maps the place of a task to the cases that are stored before this task. It depends only on the arguments, so every
    method gets the same.

    >>> wrong_cases("start=1", ["a", "b"], ["x", "y"], seed=0)
    {0: [('b', 'x')]}
    """
    name, _, number = kind.partition("=")
    if not name:
        return {}
    share, n = float(number), len(queries)
    count = round(share * n) if share < 1 else int(share)
    if count > n or len(set(solutions)) < 2:
        raise InvalidInput(f"no {count:,} wrong cases can be made of {n:,} tasks with {len(set(solutions)):,} solutions")
    rng = np.random.default_rng([seed, 29])
    found: dict[int, list[tuple[str, str]]] = {}
    for i, place in enumerate(map(int, rng.choice(n, count, replace=False))):
        other = next(int(one) for one in rng.permutation(n) if solutions[one] != solutions[place])
        found.setdefault(i * n // count if name == "along" else 0, []).append((queries[place], solutions[other]))
    return found
