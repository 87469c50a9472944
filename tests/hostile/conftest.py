"""Fixtures of the hostile tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from learned_folder import OnDisk, teach


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
