"""Fixtures of the hostile tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import chromadb
import pytest
from learned_folder import OnDisk, teach

from cascade_memory import CascadeMemory


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of its own, for thousands of memories."""
    made = tmp_path / "place"
    made.mkdir()
    return made


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
    memory.data.backup(tmp_path / "backup")
    memory.close()
    return tmp_path / "backup"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a memory with twenty cases, all of them in Chroma."""
    folder = tmp_path_factory.mktemp("closed") / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="off") as memory:
        memory.add([(f"task {i} of kind {i * i}", f"solution {i}") for i in range(20)])
        memory.acting(namespace="tenant/7").add("elsewhere", "s")
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
