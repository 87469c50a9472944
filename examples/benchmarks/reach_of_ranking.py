"""How many tasks of llb-db does a ranking solve that has learned from many more outcomes than a memory hears of?

    pip install scikit-learn
    python examples/benchmarks/reach_of_ranking.py FOLDER --table outcomes.npy

The reuse agent is asked once for every pair of a task and a case: 250,000 pairs, some ten minutes on two cores; ``--table``
keeps the outcomes. Then cases are chosen for tasks that were not learned from. *Learned* knows far more outcomes than a memory
can: those of 350 tasks with *every* case, where a memory hears of one case per task. *Solution known* also sees what nobody can
know: how alike the right solution of the task is to that of each case. No task is solved without a case here, unlike on the
board. The intervals are over draws of banks and tasks, which overlap, so they are somewhat too narrow.
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

from cascade_memory.encoders.alignment import ExpectedForm
from cascade_memory.encoders.lexical import Rarity, word_terms
from cascade_memory.evaluation.bench.stage import best_embedder
from cascade_memory.evaluation.reuse.tables_agent import TablesAgent
from cascade_memory.evaluation.tasks.tables_task import TablesTask

Floats = NDArray[np.float64]
BANKS, LEARNED_FROM, DRAWS, T_OF_DRAWS = (50, 100, 200), 350, 8, 2.365
EXPECTED = "the expected form, nothing learned"
# Places in the last axis of ``Bank.signals``; those of SOLUTION are what nobody can know.
FORM, TOPIC, SOLUTION = 0, 1, (3, 7)


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


class Bank:
    """The cases of a bank, and the numbers of each pair of a task and a case from which the success is predicted."""

    def __init__(self, cases: NDArray[np.int64], tasks: Sequence[str], solutions: Sequence[str], topics: Floats) -> None:
        self.cases, self._topics, self._tasks, self._solutions = cases, topics, tasks, solutions
        self._form = ExpectedForm()
        self._form.add([tasks[case] for case in cases], [solutions[case] for case in cases])

    def _expected(self, task: int) -> Floats:
        """Return how far each case's solution has the form that the *other* cases let us expect; the library's own signal."""
        found = np.zeros(len(self.cases))
        others = self.cases != task
        texts, solutions = ([of[case] for case in self.cases[others]] for of in (self._tasks, self._solutions))
        found[others] = self._form.likeness(self._tasks[task], texts, solutions)
        return found

    def _likeness(self, words: Rarity, texts: Sequence[str], asked: Sequence[int]) -> Floats:
        """Return how many common words, and pairs of words, texts share with those of the cases, as cosines."""
        all_texts = [texts[one] for one in (*asked, *self.cases)]
        rows = words.common_rows(word_terms(all_texts, pairs=True), len(all_texts)).astype(np.float64)
        return rows[: len(asked)] @ rows[len(asked) :].T

    def signals(self, asked: Sequence[int], rates: Floats) -> Floats:
        """Return the numbers of each pair, of shape (tasks, cases, numbers): four, each less its best, and two of the case."""
        columns = [
            np.array([self._expected(task) for task in asked]),
            self._topics[np.ix_(asked, self.cases)],
            self._likeness(self._form.tasks, self._tasks, asked),
            self._likeness(self._form.solutions, self._solutions, asked),
        ]
        own = np.asarray(asked)[:, None] == self.cases  # a new task has no case of its own among which to be the best
        columns += [column - np.where(own, -np.inf, column).max(axis=1, keepdims=True) for column in columns]
        lengths = np.array([len(self._solutions[case]) for case in self.cases], np.float64)
        columns += [np.broadcast_to(one, columns[0].shape) for one in (lengths, rates)]
        return np.stack(columns, axis=-1)


def learned(signals: Floats, solved: Floats, counts: NDArray[np.bool_], asked: Floats) -> Floats:
    """Predict success from numbers of pairs, as trees that were boosted on the outcomes of other pairs."""
    trees = HistGradientBoostingClassifier(
        max_iter=100, max_leaf_nodes=8, l2_regularization=1.0, early_stopping=False, random_state=0
    )
    trees.fit(signals[counts], solved[counts])
    return trees.predict_proba(asked.reshape(-1, asked.shape[-1]))[:, 1].reshape(asked.shape[:2])


def choose(solved: Floats, bank: Bank, old: NDArray[np.int64], new: NDArray[np.int64]) -> dict[str, float]:
    """Return the success in percent of each way to choose a case for the new tasks; outcomes of the old ones are known."""
    others, rates = old[:, None] != bank.cases, solved[np.ix_(old, bank.cases)].mean(axis=0)
    pairs, outcomes = solved[np.ix_(new, bank.cases)], solved[np.ix_(old, bank.cases)]
    asked, seen = bank.signals(new, rates), bank.signals(old, rates)
    asked_of_memory, seen_of_memory = (np.delete(one, SOLUTION, axis=-1) for one in (asked, seen))
    scores = {
        "the most similar task": asked[:, :, TOPIC],
        EXPECTED: asked[:, :, FORM],
        "learned from all outcomes": learned(seen_of_memory, outcomes, others, asked_of_memory),
        "learned, and solution known": learned(seen, outcomes, others, asked),
        "the most similar solution (nobody knows it)": asked[:, :, SOLUTION[0]],
        "some case of the bank": pairs,
    }
    rows = np.arange(len(new))
    return {name: 100.0 * float(pairs[rows, score.argmax(axis=1)].mean()) for name, score in scores.items()}


def cell(found: Sequence[dict[str, float]], name: str) -> str:
    """Write the mean success, and the mean difference from the expected form with its 95 % interval over the draws."""
    mean = float(np.mean([one[name] for one in found]))
    differences = np.array([one[name] - one[EXPECTED] for one in found])
    half = T_OF_DRAWS * differences.std(ddof=1) / np.sqrt(len(found))
    return f"{mean:.1f}" if name == EXPECTED else f"{mean:.1f} ({differences.mean():+.1f} ± {half:.1f})"


def main() -> None:
    """Ask the agent, or read what it did, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with llb_db.json")
    parser.add_argument("--table", type=Path, required=True, help="where the outcomes are kept (.npy)")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    items = TablesTask(name="llb-db", file="llb_db.json").items(given.data)
    if not given.table.exists():
        with given.table.open("wb") as file:
            np.save(file, table_of(given.data, len(items), given.processes))
    solved = np.load(given.table, allow_pickle=False).astype(np.float64)
    tasks, solutions = [item.query for item in items], [str(item.solution) for item in items]
    vectors = np.asarray(best_embedder().embed(tasks), np.float64)
    found: dict[int, list[dict[str, float]]] = {size: [] for size in BANKS}
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(items))
        old, new = order[:LEARNED_FROM], order[LEARNED_FROM:]
        for size in BANKS:
            found[size].append(choose(solved, Bank(order[:size], tasks, solutions, vectors @ vectors.T), old, new))
    rows = [[name, *(cell(found[size], name) for size in BANKS)] for name in found[BANKS[0]][0]]
    print(markdown([["chosen by", *(f"{size} cases" for size in BANKS)], *rows]))


if __name__ == "__main__":
    main()
