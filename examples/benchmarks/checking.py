"""How long does it take to check an action for known mistakes? At 10,000 failures, compared with well-known operations.

    python examples/benchmarks/checking.py                    # 10,000 failures in a folder
    python examples/benchmarks/checking.py --failures 1000    # quick

References, in the same run: an exact numpy scan over as many vectors, a bare SQLite commit that survives the death of the
process (synchronous=NORMAL, which is what a check writes), and a recall. Queries are embedded beforehand. Times are in
milliseconds; they vary on a shared machine, so compare the ratios.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from cascade_memory import CascadeMemory, Step
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.stream import PrecomputedEmbedder

COLUMNS = 2_000  # different mistakes


def quantiles_ms(run: Callable[[int], object], times: int) -> tuple[float, float]:
    """Return median and 95 % quantile of the duration of ``run(i)``."""
    spent = []
    for i in range(times):
        began = time.perf_counter()
        run(i)
        spent.append(1000 * (time.perf_counter() - began))
    return float(np.median(spent)), float(np.quantile(spent, 0.95))


def column(number: int) -> str:
    """Name a column that does not exist."""
    return "column_" + "".join(chr(97 + int(digit)) for digit in str(number % COLUMNS))


def fill(memory: CascadeMemory, failures: int) -> None:
    """Let agents fail: each at one of the mistakes."""
    for number in tqdm(range(failures), desc="failing", leave=False):
        name = column(number)
        step = Step(tool="sql", arguments={"q": f"SELECT {name} FROM t"}, observation=f"no such column: {name}", failed=True)
        memory.recall(task(number)).reward(0.0, solution=[step], source="env")


def task(number: int) -> str:
    """Return the text of a task."""
    return f"Ticket {number}: list {column(number)} of all customers of region {number % 90}"


def bare_commit(folder: Path, times: int) -> tuple[float, float]:
    """Return how long SQLite alone takes to commit one small row so that it survives the death of the process."""
    connection = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE t (x)")

    def commit(i: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", (f"row {i}" * 10,))
        connection.execute("COMMIT")

    found = quantiles_ms(commit, times)
    connection.close()
    return found


def in_turn(run: Callable[[int], object], reference: Callable[[int], object], times: int) -> tuple[float, float, float]:
    """Return median and 95 % quantile of ``run(i)``, and how many times the same quantile of the reference that is."""
    spent: list[list[float]] = [[], []]
    for i in range(times):
        for kind, call in enumerate((run, reference)):
            began = time.perf_counter()
            call(i)
            spent[kind].append(1000 * (time.perf_counter() - began))
    most = float(np.quantile(spent[0], 0.95))
    return float(np.median(spent[0])), most, most / float(np.quantile(spent[1], 0.95))


def sql(columns: str) -> dict[str, object]:
    """Return the call that selects columns."""
    return {"tool": "sql", "arguments": {"q": f"SELECT {columns} FROM t"}}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=500)
    options = parser.parse_args()
    times = options.times
    asked = [task(1_000_000 + i) for i in range(5 * times)]
    embedder = PrecomputedEmbedder(HashingEmbedder(), [*asked, *map(task, range(options.failures))])
    with tempfile.TemporaryDirectory() as name, CascadeMemory(Path(name) / "memory", embedder=embedder) as memory:
        commit = bare_commit(Path(name), times)
        ids = [memory.recall(text).episode_id for text in asked]
        once, first, second, third, last = (ids[i * times : (i + 1) * times] for i in range(5))

        def recall(i: int) -> None:
            memory.recall(asked[i])

        memory.warnings.check(once[0], **sql("name"))
        rows = {"nothing has failed yet": in_turn(lambda i: memory.warnings.check(once[i], **sql("name")), recall, times)}
        fill(memory, options.failures)
        memory.sync()
        vectors, queries = embedder.embed(list(map(task, range(options.failures)))), embedder.embed(asked[:times])
        scan = quantiles_ms(lambda i: int(np.argmax(vectors @ queries[i])), times)
        memory.warnings.check(once[0], **sql("name"))  # loads
        many = ", ".join(map(column, range(100)))

        def after_a_reward(i: int) -> None:
            memory.warnings.check(last[i], **sql(column(i)))

        def reward(i: int) -> None:
            memory.reward(once[i], i % 2, solution=[Step(action="look")], source="env")

        rows |= {
            "no known mistake": in_turn(lambda i: memory.warnings.check(first[i], **sql(f"name_{i}")), recall, times),
            "a known mistake": in_turn(lambda i: memory.warnings.check(second[i], **sql(column(i))), recall, times),
            "a hundred known mistakes in one action": in_turn(
                lambda i: memory.warnings.check(third[i], **sql(many)), recall, times
            ),
            "a known mistake, just after a reward (compared with that)": in_turn(after_a_reward, reward, times),
        }
        failures = memory.health().failures
    print(f"\n{options.failures:,} failures of {min(COLUMNS, options.failures):,} kinds, in ms: median, and 95 % within")
    print(f"a bare SQLite commit: {commit[0]:.3f}, {commit[1]:.3f}; numpy over as many vectors: {scan[0]:.3f}, {scan[1]:.3f}\n")
    print("| check of an action: | median | 95 % within | x a recall | x the commit | x numpy |\n|---|---|---|---|---|---|")
    for what, (median, most, ratio) in rows.items():
        print(f"| {what} | {median:.3f} | {most:.3f} | {ratio:.2f} | {most / commit[1]:.1f} | {most / scan[1]:.2f} |")
    worst = max(most for _, most, _ in rows.values())
    print(f"\nasked: 95 % of the checks within 5 ms. Found: {worst:.2f} ms. Failures of the memory: {failures or 'none'}")


if __name__ == "__main__":
    main()
