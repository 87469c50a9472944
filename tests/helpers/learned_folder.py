"""A folder that has learned something, for those who then write into it what they like."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from cascade_memory import CascadeMemory

OnDisk = Callable[..., CascadeMemory]


def teach(memory: CascadeMemory, n: int = 12) -> None:
    for i in range(n):
        recall = memory.recall(f"task {i} of kind {i % 4}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 4}", metadata={"user": "ann"})


def sql(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        connection.execute(statement)
    connection.close()
