"""What docs/threat-model.md promises, it shows: each line of "Protected" names tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
PROTECTED = PAGE.split("## Protected")[1].split("\n## ")[0]
LINES = [line.strip("|").rsplit("|", 1) for line in PROTECTED.splitlines() if line.startswith("| ") and "shown by" not in line]


def test_there_is_something_to_check():
    assert len(LINES) >= 10
    assert not re.search(r"^[-*] ", PROTECTED, re.MULTILINE), "a line outside the table names no test"


@pytest.mark.parametrize(("what", "shown_by"), LINES, ids=[line[0].strip()[:40] for line in LINES])
def test_every_protection_names_tests_that_exist(what: str, shown_by: str):
    named = re.findall(r"`(tests/[^`]+)`", shown_by)
    assert named, f"no test is named for: {what}"
    for one in named:
        file, _, test = one.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        assert test in functions if test else any(name.startswith("test_") for name in functions), f"there is no {one}"
