"""What a line of the log means is said in one place, and what follows the log asks there."""

from __future__ import annotations

import ast
from pathlib import Path

import cascade_memory
from cascade_memory.domain import records

ROOT = Path(cascade_memory.__file__).parent
FOLLOW = ("cycle", "learning", "engine")


def test_nobody_who_follows_the_log_reads_its_words():
    found = []
    for path in (file for folder in FOLLOW for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            words = {name for name in names if getattr(records, name, None) in records.CHANGES}
            if words:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} reads {', '.join(sorted(words))}")
    assert not found, found
