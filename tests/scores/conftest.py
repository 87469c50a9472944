"""Keys of the platforms, and a clock on which pauses take no time."""

from __future__ import annotations

import time
import types

import pytest
from score_platform import KEY, SECRET


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_ENDPOINT", "LANGSMITH_WORKSPACE_ID", "LANGFUSE_BASE_URL", "LANGFUSE_HOST", "PHOENIX_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_PROJECT", "PHOENIX_PROJECT_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("LANGSMITH_API_KEY", "PHOENIX_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-of-a-test")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were to be waited: nobody waits. Other threads of the process sleep as ever, and are not noted."""
    waited: list[float] = []
    clock = types.SimpleNamespace(sleep=waited.append, time=lambda: time.time())
    monkeypatch.setattr("cascade_memory.capabilities.scores.asking.time", clock)
    return waited
