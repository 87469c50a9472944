"""The task streams of the learning benchmark, read from the folder that CASCADE_DATA names."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Stream:
    """Queries, their right solutions, and how often the simulated solver succeeds alone."""

    name: str
    queries: list[str]
    labels: list[str]
    zero_shot: float

    def shuffled(self, seed: int) -> Stream:
        """Return the same tasks in another order."""
        order = np.random.default_rng([seed, 7]).permutation(len(self.queries))
        return Stream(self.name, [self.queries[i] for i in order], [self.labels[i] for i in order], self.zero_shot)


# File and zero-shot success. The rates are those of a 32B model in the paper; RCA's is a stand-in's.
FILES = {
    "Banking77": ("banking77.jsonl", 0.667),
    "DDXPlus": ("ddxplus.jsonl", 0.638),
    "RCA": ("rca_huawei_module.jsonl", 0.454),
    "SEntFiN": ("sentifin.jsonl", 0.343),
}


def data_folder() -> Path | None:
    """Return the folder of the streams, or None when there is none."""
    folder = os.environ.get("CASCADE_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def load(name: str, limit: int | None = None) -> Stream:
    """Read a stream."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("skipped: no data (CASCADE_DATA names no folder of task streams)")
    file, zero_shot = FILES[name]
    with (folder / file).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:limit]
    labels = [row["label"] if isinstance(row["label"], str) else json.dumps(row["label"], sort_keys=True) for row in rows]
    return Stream(name, [row["task"] for row in rows], labels, zero_shot)
