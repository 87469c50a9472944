"""A check takes milliseconds, however many failures are known, and nothing where there are none."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from inside import engine_of
from many_failures import fill
from warned import CALL, TASK, fail
from warning_rows import rows_of

from cascade_memory import CascadeMemory


def spent(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


@pytest.mark.long
def test_ten_thousand_failures_cost_milliseconds():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        fill(engine_of(memory).parts.ledger, 10_000)
        engine_of(memory).follow()
        episodes = [memory.recall(TASK).episode_id for _ in range(300)]
        call = {"tool": "sql", "arguments": {"q": "select word_a, xa from t"}}
        memory.warnings.check(memory.recall(TASK).episode_id, **call)  # loads
        matching = sorted(spent(lambda e=e: memory.warnings.check(e, **call)) for e in episodes)
        other = sorted(spent(lambda e=e: memory.warnings.check(e, "go north")) for e in episodes)
        assert len(memory.warnings.all()) > 300
        assert memory.health().ok
        assert matching[int(0.95 * len(matching))] < 25.0  # 5 ms on a quiet machine: examples/benchmarks/checking.py
        assert other[int(0.95 * len(other))] < 5.0


def test_where_nothing_has_failed_a_check_asks_nobody(monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        recall = memory.recall(TASK)
        assert memory.warnings.check(recall.episode_id, **CALL) is None

        def asked(*_: object, **__: object) -> object:
            raise AssertionError("the ledger was asked")

        ledger = engine_of(memory).parts.ledger
        for name in ("failures", "decisions", "tallies", "checks", "note_check"):
            monkeypatch.setattr(rows_of(memory), name, asked)
        monkeypatch.setattr(ledger.episodes, "one", asked)
        monkeypatch.setattr(ledger, "tail", asked)
        assert memory.warnings.check(recall.episode_id, **CALL) is None
        assert np.median([spent(lambda: memory.warnings.check(recall.episode_id, **CALL)) for _ in range(200)]) < 1.0
        assert memory.health().ok


def test_where_nothing_has_failed_a_check_takes_nothing_out_of_an_action():
    taken: list[str] = []

    def take(text: str) -> str:
        taken.append(text)
        return text

    with CascadeMemory(embedder="hashing", learn="inline", redact=take) as memory:
        recall = memory.recall(TASK)
        taken.clear()
        for _ in range(3):
            assert memory.warnings.check(recall.episode_id, **CALL) is None
        assert taken == []
        fail(memory)
        taken.clear()
        memory.warnings.check(memory.recall(TASK).episode_id, **CALL)
        assert any("SELECT" in text for text in taken), "it is compared as it would be stored"


def test_a_reward_and_a_recall_look_at_no_warning_where_nothing_was_checked(monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)

        def asked(*_: object, **__: object) -> object:
            raise AssertionError("the ledger was asked")

        for name in ("failures", "decisions", "tallies", "checks", "note_check"):
            monkeypatch.setattr(rows_of(memory), name, asked)
        memory.recall(TASK).reward(1.0, solution="SELECT name FROM t")
        memory.sync()
        assert memory.health().ok
