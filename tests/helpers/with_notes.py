"""A copy of the package in which the example of a capability is one: its folder, and three lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "capability"
THE_THREE_LINES = (
    ('    "warnings",\n)\n', '    "warnings",\n    "notes",\n)\n'),
    ("if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    from cascade_memory.capabilities.notes.verbs import Notes\n"),
    ("        warnings: Warnings\n", "        warnings: Warnings\n        notes: Notes\n"),
)


def with_notes(project: Path) -> Path:
    """Make the copy in an empty folder, and return that."""
    package = project / "cascade_memory"
    shutil.copytree(PROJECT / "cascade_memory", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE / "notes", package / "capabilities" / "notes")
    listed = package / "capabilities" / "__init__.py"
    text = listed.read_text(encoding="utf-8")
    for before, after in THE_THREE_LINES:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    listed.write_text(text, encoding="utf-8")
    return project


def run_in(project: Path, *arguments: str | Path, at: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with the package of a project."""
    environment = {**os.environ, "PYTHONPATH": str(project)}
    environment.pop("PYTEST_ADDOPTS", None)  # options of this project's conftest, which the copy lacks
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=at or project, env=environment, capture_output=True, text=True, check=False)
