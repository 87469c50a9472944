"""Rows that may be compared: of one kind of solver, on streams cut at the same length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import METHODS
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

Measure = Callable[[Row], "float | None"]  # percent of a row; None where the row does not tell

_LABELS = {
    "simulated": "SIMULATED solver, no language model",
    "reuse": "REUSE agent, no language model",
    "reuse-map": "REUSE agent of the weaker kind (reuse-map), no language model",
}
_NEEDED = {"task": str, "method": str, "solver": str, "seed": int, "n": int, "rate": (int, float), "success": str}


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one solver, and what is in them."""

    solver: str
    limit: int | None
    rows: Mapping[tuple[str, str, int], Row]  # by task, method and seed

    @property
    def title(self) -> str:
        """Say who solved the tasks."""
        return _LABELS.get(self.solver, f"model {self.solver}")

    @property
    def tasks(self) -> list[str]:
        """Return the tasks, in the order of the catalogue; others behind, in the order of the rows."""
        return _ordered((task for task, _, _ in self.rows), CATALOGUE)

    @property
    def methods(self) -> list[str]:
        """Return the methods, in the order in which the benchmark lists them; others behind."""
        return _ordered((method for _, method, _ in self.rows), METHODS)

    @property
    def seeds(self) -> list[int]:
        """Return the seeds."""
        return sorted({seed for _, _, seed in self.rows})

    def of(self, task: str, method: str) -> list[Row]:
        """Return the rows of a method on a task, a row per seed."""
        return [row for (its_task, its_method, _), row in self.rows.items() if (its_task, its_method) == (task, method)]

    def of_task(self, task: str) -> list[Row]:
        """Return the rows of all methods on a task."""
        return [row for (its_task, _, _), row in self.rows.items() if its_task == task]

    def of_method(self, method: str) -> list[Row]:
        """Return the rows of a method on all tasks."""
        return [row for (_, its_method, _), row in self.rows.items() if its_method == method]

    def by_seed(self, task: str, method: str, measure: Measure) -> dict[int, float]:
        """Return what a method reached on a task, by seed."""
        found = {row["seed"]: measure(row) for row in self.of(task, method)}
        return {seed: value for seed, value in found.items() if value is not None}


def _ordered(found: Iterable[str], listed: Iterable[str]) -> list[str]:
    names = dict.fromkeys(found)
    return [*(name for name in listed if name in names), *(name for name in names if name not in set(listed))]


def sections(rows: Iterable[Row]) -> list[Section]:
    """Part rows that must not be mixed. Of two rows of the same run the later one counts."""
    parts: dict[tuple[str, int | None], dict[tuple[str, str, int], Row]] = {}
    for place, row in enumerate(rows, 1):
        _check(row, place)
        part = parts.setdefault((row["solver"], row.get("limit")), {})
        part[row["task"], method_of(row), row["seed"]] = row
    return [Section(solver, limit, part) for (solver, limit), part in parts.items()]


def _check(row: Row, place: int) -> None:
    for name, kind in _NEEDED.items():
        if not isinstance(row.get(name), kind):
            raise InvalidInput(f"row {place} has no usable {name!r}: these are not rows that bench run wrote")


def method_of(row: Row) -> str:
    """Name a row's method, with the parameters that it was given.

    >>> method_of({"method": "CASCADE", "options": '{"alpha": 0.3}'})
    'CASCADE {"alpha": 0.3}'
    """
    return f"{row['method']} {row['options']}" if row.get("options") else str(row["method"])


def bits(row: Row, name: str) -> NDArray[np.bool_] | None:
    """Return a string of 0 and 1, a character per task, as an array; None where the row does not tell.

    >>> bits({"n": 3, "alone": "011"}, "alone")
    array([False,  True,  True])
    """
    text = row.get(name)
    return np.array([one == "1" for one in text]) if isinstance(text, str) and text and len(text) == row["n"] else None


def declared(row: Row) -> dict[str, Any]:
    """Return the parameters that were declared for the row's solver."""
    given = row.get("declared")
    if isinstance(given, dict):
        return dict(given)
    return {name: row[name] for name in ("alone", "matched", "misled") if isinstance(row.get(name), float)}


def solved(row: Row) -> float:
    """Return how many tasks were solved, in percent; where a human was asked about some, of the others.

    >>> solved({"rate": 0.5, "rate_unasked": 0.45})
    45.0
    """
    return 100 * float(row.get("rate_unasked", row["rate"]))


def solved_of_the_rest(row: Row) -> float | None:
    """Return how many were solved of the tasks that the solver does not solve alone, in percent."""
    alone, success, asked = (bits(row, name) for name in ("alone", "success", "asked"))
    if alone is None or success is None:
        return None
    rest = ~alone if asked is None else ~alone & ~asked
    return 100 * float(success[rest].mean()) if rest.any() else None


def mean_text(values: Sequence[float]) -> str:
    """Return a mean with its interval, if there is one.

    >>> mean_text([50.0]), mean_text([49.0, 51.0]), mean_text([])
    ('50.0', '50.0 ± 12.7', '')
    """
    if not values:
        return ""
    mean, half = interval(values)
    return f"{mean:.1f}" if np.isnan(half) else f"{mean:.1f} ± {half:.1f}"
