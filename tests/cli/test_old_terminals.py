"""Other systems, as far as this one can show them: a terminal that knows few letters, and paths with backslashes."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.evaluation.search.mcp_connection import words_of_command


def test_a_terminal_that_knows_few_letters_shows_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("where is the 盒子?", "in the cellar")
    screen = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["show", "cases", str(tmp_path / "memory")]) == 0
    screen.flush()
    printed = screen.buffer.getvalue().decode("cp1252")
    assert "in the cellar" in printed
    assert r"\u76d2\u5b50" in printed


def test_a_backslash_of_a_path_stays_on_windows():
    command = r'C:\Python\python.exe "my server.py" --fast'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "name", "nt")
        found = words_of_command(command)
    assert found == [r"C:\Python\python.exe", "my server.py", "--fast"]
    assert words_of_command(command)[0] == "C:Pythonpython.exe"  # as a shell of this system reads it
