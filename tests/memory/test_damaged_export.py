"""A damaged export: refused whole, with the line that is wrong."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput


def _exported(ram: CascadeMemory) -> list[dict[str, Any]]:
    lines = io.StringIO()
    recall = ram.recall("task")
    ram.reward(recall.episode_id, 1.0, solution="s", metadata={"a": 1})
    ram.recall("another task")
    ram.data.export(lines)
    return [json.loads(line) for line in lines.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("case", {"vector": "AAAA"}),
        ("case", {"vector": base64.b64encode(np.full(384, np.nan, np.float32).tobytes()).decode()}),
        ("case", {"solution_kind": "trajectory", "text": "no json"}),
        ("case", {"metadata": "text"}),
        ("case", {"metadata": {"cascade_solution": "x"}}),
        ("case", {"query": 5}),
        ("episode", {"status": "weird"}),
        ("episode", {"query": "\x00"}),
        ("episode", {"namespace": ""}),
        ("outcome", {"value": 7}),
        ("outcome", {"value": "x"}),
        ("recall", {"features": "AAAA"}),
        ("recall", {"groups": []}),
    ],
)
def test_a_damaged_export_is_refused_whole(ram: CascadeMemory, kind: str, damage: dict[str, Any]):
    records = _exported(ram)
    found = [record for record in records if record.get("kind") == kind]
    found[-1].update(damage)
    with CascadeMemory(embedder="hashing") as other:
        with pytest.raises(InvalidInput, match="nothing was imported"):
            other.data.import_([json.dumps(record) for record in records])
        assert other.stats().cases == other.stats().episodes == 0


@pytest.mark.parametrize("header", ["[]", "{", '{"format": "cascade-memory export", "version": "x"}', "[" * 100_000])
def test_a_damaged_header_is_refused(ram: CascadeMemory, header: str):
    with pytest.raises(InvalidInput):
        ram.data.import_([header])
    with pytest.raises(InvalidInput):
        ram.data.import_(5)  # type: ignore[arg-type]
