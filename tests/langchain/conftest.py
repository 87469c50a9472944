"""Fixtures of the LangChain tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.langchain import CascadeMemory


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., CascadeMemory]]:
    """Makes memories that learn inline; all are closed at the end."""
    made: list[CascadeMemory] = []

    def make_(path: Path | None = None, **options: Any) -> CascadeMemory:
        memory = CascadeMemory(path, **{"embedder": "hashing", "learn": "inline", **options})
        made.append(memory)
        return memory

    yield make_
    for memory in made:
        memory.close()


@pytest.fixture
def memory(make: Callable[..., CascadeMemory]) -> CascadeMemory:
    return make()


@pytest.fixture
def judged(make: Callable[..., CascadeMemory]) -> CascadeMemory:
    """Judges answers; a run that raised has none."""
    return make(reward_fn=lambda episode: None if episode.status == "error" else "5" in episode.answer)


@pytest.fixture
def always(make: Callable[..., CascadeMemory]) -> CascadeMemory:
    """Judges everything as a success."""
    return make(reward_fn=lambda _: 1.0)
