"""Sections of the report: rows that may be compared, with one kind of solver, on streams of the same length."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.conditions import conditions_of, rewards_named, wrong_cases_named
from cascade_memory.evaluation.bench.methods import KNOWN
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.setup import told_apart
from cascade_memory.evaluation.bench.summary import STATIC, interval
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

BASES = (*STATIC, "zero-shot", "random")
Measure = Callable[[Row], "float | None"]  # percent of a row; None where the row does not say it

_LABELS = {
    "simulated": "SIMULATED solver, no language model",
    "reuse": "REUSE agent, no language model",
    "reuse-map": "REUSE agent of the weaker kind (reuse-map), no language model",
    "reuse-aside": "REUSE agent on tasks that are set aside for development, no language model",
}
_NEEDED = {"task": str, "method": str, "solver": str, "seed": int, "n": int, "rate": (int, float), "success": str}


def _named_by(parse: Callable[[str], str]) -> Callable[[Any], bool]:
    def usable(value: Any) -> bool:
        try:
            return value is None or (isinstance(value, str) and parse(value) == value)
        except InvalidInput:
            return False

    return usable


# Rows from before these columns existed lack them.
_CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "rewards": _named_by(rewards_named),
    "wrong_cases": _named_by(wrong_cases_named),
    "misled": lambda value: value is None or (isinstance(value, (int, float)) and 0 <= value <= 1),
}


def _as_json(kind: type | tuple[type, ...]) -> Callable[[Any], bool]:
    """Return a check: the text is empty, or a JSON object whose values are of this kind."""

    def usable(value: Any) -> bool:
        try:
            found = json.loads(value) if value else {}
        except (ValueError, TypeError):
            return False
        return isinstance(found, dict) and all(isinstance(one, kind) for one in cast("dict[str, Any]", found).values())

    return usable


def _are_shares(value: Any) -> bool:
    """Say whether a column has, for each group of tasks, their number and their success, or nothing."""
    if not value:
        return True
    lists = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else [None]
    return all(isinstance(one, list) and all(part is None or isinstance(part, (int, float)) for part in one) for one in lists)


_STRUCTURED: dict[str, Callable[[Any], bool]] = {
    "options": _as_json((int, float)),
    "models": _as_json(str),
    "declared": lambda value: value is None or isinstance(value, dict),
    "kinds": _are_shares,
    "splits": _are_shares,
}


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one solver, with their tasks, methods and seeds."""

    solver: str
    limit: int | None
    rows: Mapping[tuple[str, str, int], Row]  # by task, method and seed
    under: str = ""  # what made the tasks harder, in words
    bases: Sequence[str] = BASES  # what every method is compared with

    @property
    def title(self) -> str:
        """Say who solved the tasks, and under which conditions."""
        who = _LABELS.get(self.solver, f"model {self.solver}")
        return f"{who}; {self.under}" if self.under else who

    @property
    def tasks(self) -> list[str]:
        """Return the tasks in the order of the catalogue, then other tasks in the order of the rows."""
        return _ordered((task for task, _, _ in self.rows), CATALOGUE)

    @property
    def methods(self) -> list[str]:
        """Return the methods in the order of the benchmark's list, then other methods."""
        return _ordered((method for _, method, _ in self.rows), KNOWN)

    @property
    def seeds(self) -> list[int]:
        """Return the seeds."""
        return sorted({seed for _, _, seed in self.rows})

    def of(self, task: str, method: str) -> list[Row]:
        """Return the rows of a method on a task, one per seed."""
        return [row for (its_task, its_method, _), row in self.rows.items() if (its_task, its_method) == (task, method)]

    def of_task(self, task: str) -> list[Row]:
        """Return the rows of all methods on a task."""
        return [row for (its_task, _, _), row in self.rows.items() if its_task == task]

    def of_method(self, method: str) -> list[Row]:
        """Return the rows of a method on all tasks."""
        return [row for (_, its_method, _), row in self.rows.items() if its_method == method]

    def by_seed(self, task: str, method: str, measure: Measure) -> dict[int, float]:
        """Return the measure of a method on a task for each seed."""
        found = {row["seed"]: measure(row) for row in self.of(task, method)}
        return {seed: value for seed, value in found.items() if value is not None}


def _ordered(found: Iterable[str], listed: Iterable[str]) -> list[str]:
    names = dict.fromkeys(found)
    return [*(name for name in listed if name in names), *(name for name in names if name not in set(listed))]


def sections(rows: Iterable[Row], against: Sequence[str] = ()) -> list[Section]:
    """Split rows into sections that must not be mixed.

    Of two rows of the same run, the later one counts. ``against`` names further methods with which every method is compared.
    """
    parts: dict[tuple[str, int | None, str], dict[tuple[str, str, int], Row]] = {}
    for place, row in enumerate(told_apart(rows), 1):
        _check(row, place)
        part = parts.setdefault((row["solver"], row.get("limit"), conditions_of(row)), {})
        part[row["task"], method_of(row), row["seed"]] = row
    bases = tuple(dict.fromkeys((*BASES, *against)))
    found = [Section(solver, limit, part, under, bases) for (solver, limit, under), part in parts.items()]
    if unknown := [name for name in against if not any(name in one.methods for one in found)]:
        known = ", ".join(dict.fromkeys(name for one in found for name in one.methods))
        raise InvalidInput(f"no row has the method {unknown[0]!r}; there are {known}")
    return found


def _check(row: Row, place: int) -> None:
    for name, kind in _NEEDED.items():
        if not isinstance(row.get(name), kind):
            raise InvalidInput(f"row {place} has no usable {name!r}: these are not rows that bench run wrote")
    for name, usable in {**_CONDITIONS, **_STRUCTURED}.items():
        if not usable(row.get(name)):
            raise InvalidInput(f"row {place} has no usable {name!r}: these are not rows that bench run wrote")


def method_of(row: Row) -> str:
    """Name a row's method, with its parameters if it had any.

    Parameters that the paper's authors chose for each task are left out: with others for each task, it is one method.

    >>> method_of({"method": "CASCADE", "options": '{"alpha": 0.3}'})
    'CASCADE {"alpha": 0.3}'
    >>> method_of({"method": "CASCADE", "options": '{"alpha": 0.3}', "settings": "alpha"})
    'CASCADE'
    """
    options = {name: value for name, value in options_of(row).items() if name not in str(row.get("settings") or "")}
    return f"{row['method']} {json.dumps(options, sort_keys=True)}" if options else str(row["method"])


def options_of(row: Row) -> dict[str, float]:
    """Return the parameters of a row's method; none if it had none."""
    return json.loads(row.get("options") or "{}")


def bits(row: Row, name: str) -> NDArray[np.bool_] | None:
    """Convert a row's string of 0 and 1, a character per task, to an array; None if the row does not have it.

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
    """Compute the percentage of tasks solved, without the tasks about which a human was asked.

    >>> solved({"rate": 0.5, "rate_unasked": 0.45})
    45.0
    """
    return 100 * float(row.get("rate_unasked", row["rate"]))


def solved_of_the_rest(row: Row) -> float | None:
    """Compute the percentage solved of the tasks that the solver does not solve alone."""
    alone, success, asked = (bits(row, name) for name in ("alone", "success", "asked"))
    if alone is None or success is None:
        return None
    rest = ~alone if asked is None else ~alone & ~asked
    return 100 * float(success[rest].mean()) if rest.any() else None


def solved_last_fifth(row: Row) -> float | None:
    """Compute the percentage solved of the last fifth of the tasks; tasks about which a human was asked do not count.

    >>> solved_last_fifth({"n": 10, "success": "0000000001"})
    50.0
    """
    success, asked = (bits(row, name) for name in ("success", "asked"))
    if success is None:
        return None
    last = np.array_split(success if asked is None else success[~asked], 5)[-1]
    return 100 * float(last.mean()) if len(last) else None


def mean_text(values: Sequence[float]) -> str:
    """Format a mean with its interval, if there is one.

    >>> mean_text([50.0]), mean_text([49.0, 51.0]), mean_text([])
    ('50.0', '50.0 ± 12.7', '')
    """
    if not values:
        return ""
    mean, half = interval(values)
    return f"{mean:.1f}" if np.isnan(half) else f"{mean:.1f} ± {half:.1f}"
