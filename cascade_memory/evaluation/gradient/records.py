"""What is recorded of each episode of a model that learns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

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
