"""What a line of the log means is said in one place, and what follows the log asks there."""

from __future__ import annotations

import ast
from pathlib import Path

import cascade_memory
from cascade_memory.domain import records
from cascade_memory.engine.mirror_projection import MirrorProjection
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.learning.shared_head import SharedHead

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


def test_all_that_is_made_from_the_log_is_of_one_kind():
    for projection in (NamespaceState, SharedHead, MirrorProjection):
        assert {"seq", "apply", "rebuild"} <= {*dir(projection), *projection.__init__.__code__.co_names}, projection


def test_one_loop_hands_lines_to_what_is_made_from_them():
    handing = []
    for path in (file for folder in FOLLOW for file in (ROOT / folder).rglob("*.py")):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if any(isinstance(func, ast.Attribute) and func.attr == "apply" for func in calls):
            handing.append(path.relative_to(ROOT).as_posix())
    assert handing == ["engine/follower.py"]
