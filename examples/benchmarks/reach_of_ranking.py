"""How many tasks of llb-db could be solved, at best, by a ranking that has learned from outcomes?

    pip install scikit-learn
    python examples/benchmarks/reach_of_ranking.py FOLDER --table outcomes.npy

The reuse agent is asked once for every pair of a task and a case: 250,000 pairs, some ten minutes on two cores; ``--table``
keeps the outcomes. Then cases are chosen for tasks that were not learned from. *Learned* knows far more outcomes than a memory
can: those of 350 tasks with *every* case, where a memory hears of one case per task. *Solution known* also sees what nobody can
know: how alike the right solution of the task is to that of each case. No task is solved without a case here, unlike on the
board.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from time_to_help import markdown

from cascade_memory.encoders.lexical import Rarity, word_terms
from cascade_memory.evaluation.bench.stage import best_embedder
from cascade_memory.evaluation.reuse.tables_agent import TablesAgent
from cascade_memory.evaluation.tasks.tables_task import TablesTask

Floats = NDArray[np.float64]
BANKS, LEARNED_FROM, REPEATS = (50, 100, 200), 350, 8
RIDGE = 0.1


def outcomes_of(data: Path, tasks: range) -> Floats:
    """Return for some tasks, as rows, whether the agent solves them with each case."""
    task = TablesTask(name="llb-db", file="llb_db.json")
    items = task.items(data)
    agent = TablesAgent(task, items, alone=[False] * len(items))
    solved = np.zeros((len(tasks), len(items)))
    for row, item in zip(solved, [items[place] for place in tasks], strict=True):
        adapted = [agent.adapted(case.query, str(case.solution), item) for case in items]
        right = {sql: agent.is_right(sql, item) for sql in set(adapted)}
        row[:] = [right[sql] for sql in adapted]
    return solved


def table_of(data: Path, count: int, processes: int) -> Floats:
    """Return whether the agent solves each task with each case."""
    parts = [range(first, min(first + 20, count)) for first in range(0, count, 20)]
    with ProcessPoolExecutor(processes) as pool:
        return np.concatenate(list(pool.map(partial(outcomes_of, data), parts)))


def likenesses(texts: Sequence[str]) -> Floats:
    """Return how many common words, and pairs of words, each two texts share, as cosines."""
    words = Rarity(word_terms, counted=partial(word_terms, pairs=True))
    words.add(texts)
    rows = words.common_rows(texts).astype(np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return rows @ rows.T


class Ranked:
    """Numbers of each pair of a task and a case of one bank, from which the success is predicted."""

    def __init__(self, bank: NDArray[np.int64], likeness: dict[str, Floats], lengths: Floats, rates: Floats) -> None:
        self._bank, self._likeness, self._lengths, self._rates = bank, likeness, lengths, rates

    def _expected(self, task: int) -> Floats:
        """Return how alike each case's solution is to the one to be expected from the tasks of the other cases."""
        others = self._bank[self._bank != task]
        tasks, solutions = self._likeness["tasks"], self._likeness["solutions"]
        known = tasks[np.ix_(others, others)] + RIDGE * np.eye(len(others))
        return np.linalg.solve(known, tasks[others, task]) @ solutions[np.ix_(others, self._bank)]

    def signals(self, tasks: Sequence[int], *, known: bool = False) -> Floats:
        """Return the numbers, of shape (tasks, cases, numbers); the first is the likeness to the expected solution."""
        expected = np.array([self._expected(task) for task in tasks])
        names = ("topics", "tasks", *(["solutions"] if known else []))
        columns = [expected, *(self._likeness[name][np.ix_(tasks, self._bank)] for name in names)]
        columns += [column - column.max(axis=1, keepdims=True) for column in columns]
        columns += [np.broadcast_to(one[self._bank], expected.shape) for one in (self._lengths, self._rates)]
        return np.stack(columns, axis=-1)


def learned(signals: Floats, solved: Floats, counts: NDArray[np.bool_], asked: Floats) -> Floats:
    """Predict success from numbers of pairs, as trees that were boosted on the outcomes of other pairs."""
    trees = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.08, max_leaf_nodes=15, l2_regularization=1.0, random_state=0
    )
    trees.fit(signals[counts], solved[counts])
    return trees.predict_proba(asked.reshape(-1, asked.shape[-1]))[:, 1].reshape(asked.shape[:2])


def choose(solved: Floats, likeness: dict[str, Floats], lengths: Floats, size: int, seed: int) -> dict[str, float]:
    """Return the success in percent of each way to choose a case, on tasks that were not learned from."""
    order = np.random.default_rng(seed).permutation(len(solved))
    old, new, bank = order[:LEARNED_FROM], order[LEARNED_FROM:], order[:size]
    pairs, others = solved[np.ix_(new, bank)], old[:, None] != bank
    ranked = Ranked(bank, likeness, lengths, solved[old].mean(axis=0))
    scores = {
        "the most similar task": likeness["topics"][np.ix_(new, bank)],
        "the expected form, nothing learned": ranked.signals(new)[:, :, 0],
    }
    for name, known in (("learned from all outcomes", False), ("learned, and solution known", True)):
        signals = ranked.signals(old, known=known)
        scores[name] = learned(signals, solved[np.ix_(old, bank)], others, ranked.signals(new, known=known))
    scores["the most similar solution (nobody knows it)"] = likeness["solutions"][np.ix_(new, bank)]
    scores["some case of the bank"] = pairs
    rows = np.arange(len(new))
    return {name: 100.0 * float(pairs[rows, score.argmax(axis=1)].mean()) for name, score in scores.items()}


def main() -> None:
    """Ask the agent, or read what it did, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with llb_db.json")
    parser.add_argument("--table", type=Path, required=True, help="where the outcomes are kept (.npy)")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    items = TablesTask(name="llb-db", file="llb_db.json").items(given.data)
    if not given.table.exists():
        np.save(given.table, table_of(given.data, len(items), given.processes))
    solved = np.load(given.table, allow_pickle=False).astype(np.float64)
    tasks, solutions = [item.query for item in items], [str(item.solution) for item in items]
    vectors = np.asarray(best_embedder().embed(tasks), np.float64)
    likeness = {"topics": vectors @ vectors.T, "tasks": likenesses(tasks), "solutions": likenesses(solutions)}
    lengths = np.array([float(len(solution)) for solution in solutions])
    found = {size: [choose(solved, likeness, lengths, size, seed) for seed in range(REPEATS)] for size in BANKS}
    means = {name: [f"{np.mean([one[name] for one in found[size]]):.1f}" for size in BANKS] for name in found[BANKS[0]][0]}
    print(markdown([["chosen by", *(f"{size} cases" for size in BANKS)], *([name, *cells] for name, cells in means.items())]))


if __name__ == "__main__":
    main()
