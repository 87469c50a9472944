"""What an episode costs, in what no machine's load changes: SQL statements, and calls of functions of the package.

    python tests/helpers/costs.py

A statement counts where SQLite begins it, ``BEGIN`` and ``COMMIT`` included; a call as in ``walks.py``. Only the thread that
recalls and rewards is looked at: the one that feeds Chroma works when it likes.
"""

from __future__ import annotations

import functools
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from walks import walk_of

from cascade_memory import CascadeMemory, Ranking

_begun: Counter[int] = Counter()  # statements, by thread


class _Noted(sqlite3.Connection):
    """A connection that notes the statements that begin."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_trace_callback(lambda _: _begun.update((threading.get_ident(),)))


def cost_of(work: Callable[[], object]) -> tuple[int, int]:
    """Return how many statements some work takes, and how many calls."""
    me = threading.get_ident()
    before = _begun[me]
    calls = walk_of(work).calls
    return _begun[me] - before, calls


def costs(folder: Path, learn: Literal["inline", "off"]) -> dict[str, tuple[int, int]]:
    """Return what a recall that shows a case costs, and a reward that stores one: the least of some rounds, without a refit."""
    found: dict[str, list[tuple[int, int]]] = {"recall": [], "reward": []}
    with CascadeMemory(folder, embedder="hashing", learn=learn, deadline=None, ranking=Ranking(abstain=False)) as memory:
        for number in range(40):
            memory.reward(memory.recall(f"cool mug {number}").episode_id, 1.0, solution=f"put it into the fridge {number % 3}")
        for number in range(10):
            recalled: list[Any] = []
            found["recall"].append(cost_of(functools.partial(_recall, memory, f"cool some mug {number}", recalled)))
            found["reward"].append(cost_of(functools.partial(_reward, memory, recalled, f"use the freezer {number}")))
    return {name: (min(one for one, _ in each), min(calls for _, calls in each)) for name, each in found.items()}


def _recall(memory: CascadeMemory, query: str, recalled: list[Any]) -> None:
    recalled.append(memory.recall(query))
    assert len(recalled[0].cases) == 1


def _reward(memory: CascadeMemory, recalled: list[Any], solution: str) -> None:
    assert memory.reward(recalled[0].episode_id, 1.0, solution=solution)


def main() -> None:
    """Print the costs."""
    sqlite3.connect = functools.partial(sqlite3.connect, factory=_Noted)  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        alone, whole = (costs(Path(folder) / learn, learn) for learn in ("off", "inline"))
    said = {
        "a recall": alone["recall"],
        "a reward": alone["reward"],
        "an episode that is learned from": tuple(map(sum, zip(*whole.values(), strict=True))),
    }
    for name, (statements, calls) in said.items():
        print(f"{name}: {statements} statements, {calls} calls")


if __name__ == "__main__":
    main()
