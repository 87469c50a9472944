"""What it costs that a recall asks its hosts: next to nothing where there are none, or where nothing surrounds the recall."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from in_traces import host
from inside import engine_of

from cascade_memory import CascadeMemory


def _median(work: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of some work."""
    found: list[float] = []
    for _ in range(times):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
    return statistics.median(found)


@pytest.mark.parametrize(
    "functions", [{}, {"get_current_span": lambda: None, "INVALID_SPAN": None}], ids=["no host", "a host with nothing to say"]
)
def test_asking_takes_less_than_a_tenth_of_the_smallest_recall(functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(embedder="hashing", learn="off", deadline=None) as memory, host("opentelemetry.trace", **functions):
        found, engine = memory.recall("cool some mug"), engine_of(memory)
        whole = _median(lambda: memory.recall("cool some mug"), 60)
        monkeypatch.setattr(engine, "recall", lambda _: found)
        request = SimpleNamespace(search=False, unclean=None, record=SimpleNamespace(keep_for=lambda _: None))

        def asking() -> None:
            for _ in range(100):
                memory._found(request)  # type: ignore[arg-type]

        assert _median(asking, 30) / 100 < whole / 10
