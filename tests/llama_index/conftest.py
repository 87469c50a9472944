"""Fixtures of the LlamaIndex tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index_instrumentation import get_dispatcher

from cascade_memory import Ranking
from cascade_memory.llama_index import CascadeMemory


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., CascadeMemory]]:
    """Makes memories that learn inline; all are closed at the end, and nothing of them stays in LlamaIndex."""
    before = list(get_dispatcher().span_handlers)
    made: list[CascadeMemory] = []

    def make_(path: Path | None = None, **options: Any) -> CascadeMemory:
        memory = CascadeMemory(path, **{"embedder": "hashing", "learn": "inline", **options})
        made.append(memory)
        return memory

    yield make_
    for memory in made:
        assert memory.open_runs == 0
        memory.close()
    assert get_dispatcher().span_handlers == before


@pytest.fixture
def memory(make: Callable[..., CascadeMemory]) -> CascadeMemory:
    """One with a case in it, that always shows cases, and judges by the answer."""
    memory = make(
        ranking=Ranking(abstain=False), reward_fn=lambda episode: None if episode.status == "error" else "5" in episode.answer
    )
    memory.add("what is 2 + 3?", "add the numbers: 5")
    return memory
