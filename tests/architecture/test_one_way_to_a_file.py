"""SQLite acts on files before anybody can look at a database: only one file connects to one, and it looks first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cascade_memory

ROOT = Path(cascade_memory.__file__).parent
LOOKS_FIRST = "domain/sqlite_files.py"
# With immutable=1 SQLite reads nothing but the database. The worker is a script of its own, killed when it takes too long.
IMMUTABLE = {"evaluation/judging/sql_worker.py"}


def _connects(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "sqlite3.connect"]


def _in_ram(call: ast.Call) -> bool:
    return bool(call.args) and ast.unparse(call.args[0]) == "':memory:'"


def _trees(word: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files of the package in which a word stands; the others need not be parsed, which takes seconds."""
    for file in ROOT.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if word in text:
            yield file, ast.parse(text)


def test_a_file_is_connected_in_one_place():
    trees = _trees("sqlite3")
    found = {file.relative_to(ROOT).as_posix() for file, tree in trees if any(not _in_ram(call) for call in _connects(tree))}
    assert found == {LOOKS_FIRST, *IMMUTABLE}
    for file in IMMUTABLE:
        assert "immutable=1" in (ROOT / file).read_text(encoding="utf-8")


def test_nobody_connects_by_another_name():
    for file, tree in _trees("sqlite3"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "sqlite3":
                assert "connect" not in {one.name for one in node.names}, file


@pytest.mark.slow
def test_no_statement_numbers_its_parameters():
    """Python 3.12 warns where numbered parameters get a sequence, and 3.14 refuses it."""
    found = []
    for path, tree in _trees("?"):
        for node in ast.walk(tree):
            said = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.search(r"\?\d", said) and re.search(r"\b(WHERE|VALUES|SET|AND)\b", said):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found, found
