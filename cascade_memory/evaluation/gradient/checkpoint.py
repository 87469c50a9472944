"""The state of a model that learns, and what is recorded of each of its episodes.

It is one file that is replaced as a whole: safetensors, with the records as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of one episode."""

    success: bool
    prompt_tokens: int
    completion_tokens: int
    log_ratio: float  # of the answer: its log-probability less that of the untrained model
    ms: float


def to_json(records: Sequence[Record]) -> str:
    """Convert records to JSON, a list for each column.

    >>> from_json(to_json([Record(True, 5, 2, 0.5, 12.0)]))
    [Record(success=True, prompt_tokens=5, completion_tokens=2, log_ratio=0.5, ms=12.0)]
    """
    return json.dumps({one.name: [getattr(record, one.name) for record in records] for one in fields(Record)})


def from_json(text: str) -> list[Record]:
    """Convert JSON back to records."""
    kinds = {"success": bool, "prompt_tokens": int, "completion_tokens": int, "log_ratio": float, "ms": float}
    try:
        columns = json.loads(text)
        values = [columns[name] for name in kinds]
        fitting = all(type(value) is kind for kind, column in zip(kinds.values(), values, strict=True) for value in column)
        records = [Record(*row) for row in zip(*values, strict=True)]
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidInput(f"these are not records of episodes: {error!r}") from error
    if not fitting:
        raise InvalidInput("these are not records of episodes: a value is of another type")
    return records


def columns_of(records: Sequence[Record], last: int) -> dict[str, Any]:
    """Return the columns that records add to the row of their run; ``log_ratio`` is the mean of the last ``last`` episodes.

    >>> columns_of([Record(True, 5, 2, 0.5, 12.0), Record(True, 5, 2, 1.5, 14.0)], last=1)["log_ratio"]
    1.5
    """
    prompts, answers = sum(one.prompt_tokens for one in records), sum(one.completion_tokens for one in records)
    times = [one.ms for one in records]
    return {
        "requests": len(records),
        "prompt_tokens": prompts,
        "completion_tokens": answers,
        "tokens": prompts + answers,
        "cost": None,
        "request_log": None,
        "log_ratio": float(np.mean([one.log_ratio for one in records[-last:]])),
        "ms_per_task": float(np.median(times)),
        "seconds": sum(times) / 1000,
    }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a model that learns, after a step of the optimiser."""

    tensors: Mapping[str, Any]
    steps: int
    records: Sequence[Record]
    peak_gib: float | None


class CheckpointFile:
    """Keeps the newest checkpoint of a run. ``about`` identifies the model, the settings and the stream of the run."""

    def __init__(self, path: Path, about: str) -> None:
        self.path, self._about = path, about
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the file; the new checkpoint is on disk when this returns, and a crash leaves the old one or the new one."""
        from safetensors.torch import save

        told = {
            "about": self._about,
            "steps": str(checkpoint.steps),
            "peak_gib": "" if checkpoint.peak_gib is None else repr(checkpoint.peak_gib),
            "records": to_json(checkpoint.records),
        }
        new = self.path.with_suffix(".new")
        with open_own(new, "wb") as file:
            file.write(save(dict(checkpoint.tensors), told))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def read(self) -> Checkpoint | None:
        """Return the checkpoint; None if there is none.

        An error is raised if it is the checkpoint of another model, of other settings or of another stream.
        """
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                told = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dictionary
            about, steps, peak = told["about"], int(told["steps"]), told["peak_gib"]
            records = from_json(told["records"])
            peak_gib = float(peak) if peak else None
        except (OSError, SafetensorError, LookupError, ValueError) as error:
            raise InvalidInput(f"{self.path} is not a checkpoint of a model that learns: {error}. Delete it") from error
        if about != self._about:
            raise InvalidInput(
                f"{self.path} is the checkpoint of a run with other settings, another model or another stream: "
                "delete it, or name another file for the rows"
            )
        return Checkpoint(tensors, steps, records, peak_gib)
