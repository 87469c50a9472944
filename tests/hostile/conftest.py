"""Fixtures of the hostile tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest
from learned_folder import OnDisk, teach

from cascade_memory import CascadeMemory


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in RAM where there is such a place: thousands of memories are written to disk otherwise."""
    in_ram = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_ram) as made:
        yield Path(made)


@pytest.fixture
def folder(on_disk: OnDisk, tmp_path: Path) -> Path:
    """A closed folder that has learned something."""
    memory = on_disk()
    teach(memory)
    memory.close()
    return tmp_path / "memory"


@pytest.fixture
def backup(on_disk: OnDisk, folder: Path, tmp_path: Path) -> Path:
    """A backup of that folder."""
    memory = on_disk()
    memory.backup(tmp_path / "backup")
    memory.close()
    return tmp_path / "backup"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a memory with twenty cases, all of them in Chroma."""
    folder = tmp_path_factory.mktemp("closed") / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="off") as memory:
        memory.add([(f"task {i} of kind {i * i}", f"solution {i}") for i in range(20)])
        memory.add("elsewhere", "s", namespace="tenant/7")
    return folder


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What stood in the folder whenever Chroma opened it."""
    seen: list[list[str]] = []
    client = chromadb.PersistentClient

    def opened(path: str, **options: Any) -> Any:
        seen.append(sorted(os.listdir(path)))
        return client(path, **options)

    monkeypatch.setattr(chromadb, "PersistentClient", opened)
    return seen
