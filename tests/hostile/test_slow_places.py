"""Places that open or close slowly: whoever wants another place of the same process need not wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from stopped_writer import stopped_writer

from cascade_memory import CascadeMemory
from cascade_memory.engine import recording


def test_a_folder_that_cannot_be_closed_yet_keeps_nobody_from_opening_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording, "WAITS", 0.5)
    memory = CascadeMemory(tmp_path / "m", embedder="hashing", deadline=0.2)
    memory.add("task", "solution")
    memory.recall("task")
    with stopped_writer(tmp_path / "m"):
        assert memory.recall("task").error is None
        closing = threading.Thread(target=memory.close)
        closing.start()
        time.sleep(0.7)  # the first wait is over, and the folder is being closed
        began = time.perf_counter()
        CascadeMemory(tmp_path / "other", embedder="hashing").close()
        assert time.perf_counter() - began < 8.0  # it was as long as the writer was stopped
        closing.join(30)
        assert not closing.is_alive()


def test_a_folder_that_closes_slowly_keeps_nobody_from_opening_another(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "m", embedder="hashing", deadline=0.2)
    memory.add("task", "solution")
    with stopped_writer(tmp_path / "m"):
        time.sleep(2.5)  # the thread that feeds Chroma waits for the writer now, and closing waits for that thread
        closing = threading.Thread(target=memory.close)
        closing.start()
        time.sleep(0.5)
        began = time.perf_counter()
        CascadeMemory(tmp_path / "other", embedder="hashing").close()
        assert time.perf_counter() - began < 8.0
        assert closing.is_alive()
    closing.join(60)
    assert not closing.is_alive()


class _SlowToOpen:
    """An embedder that says how long its vectors are when it is told to."""

    identity = "slow/1"

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    @property
    def dimension(self) -> int:
        self.asked.set()
        assert self.go_on.wait(60)
        return 8

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 8), np.float32)


def test_a_folder_that_opens_slowly_keeps_nobody_from_opening_another_and_is_opened_once(tmp_path: Path):
    slow, opened = _SlowToOpen(), list[CascadeMemory]()
    threads = [threading.Thread(target=lambda: opened.append(CascadeMemory(tmp_path / "m", embedder=slow))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert slow.asked.wait(30)
    CascadeMemory(tmp_path / "other", embedder="hashing").close()
    assert not opened
    slow.go_on.set()
    for thread in threads:
        thread.join(30)
    first, second = opened
    first.add("task", "solution")
    first.close()
    assert second.stats().cases == 1  # the handles share an engine, which is open as long as one of them is
    second.close()
