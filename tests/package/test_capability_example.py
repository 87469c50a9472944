"""The capability in ``examples/capability``: its folder and three lines make it a part of the package, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "capability"
THE_THREE_LINES = (
    ("CAPABILITIES: tuple[str, ...] = ()\n", 'CAPABILITIES: tuple[str, ...] = ("notes",)\n'),
    ("if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    from cascade_memory.capabilities.notes.verbs import Notes\n"),
    ('a line for each capability."""\n', 'a line for each capability."""\n        notes: Notes\n'),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project in which the example is a capability."""
    made = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT / "cascade_memory", made / "cascade_memory", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE / "notes", made / "cascade_memory" / "capabilities" / "notes")
    (made / "tests").mkdir()
    shutil.copy(EXAMPLE / "test_notes.py", made / "tests")
    listed = made / "cascade_memory" / "capabilities" / "__init__.py"
    text = listed.read_text(encoding="utf-8")
    for before, after in THE_THREE_LINES:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    listed.write_text(text, encoding="utf-8")
    return made


def _pytest(project: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(project), "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    ended = subprocess.run([*command, *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-2_000:]
    return ended.stdout


@pytest.mark.slow
def test_its_own_tests_pass(project: Path):
    assert "passed" in _pytest(project, "tests")


@pytest.mark.slow
def test_its_examples_do_what_they_say(project: Path):
    assert "passed" in _pytest(project, "--doctest-modules", "cascade_memory/capabilities")


@pytest.mark.slow
def test_a_memory_with_its_tables_is_refused_where_it_is_missing(project: Path, tmp_path: Path):
    made = "from cascade_memory import CascadeMemory; CascadeMemory('m', embedder='hashing').close()"
    for place, code in ((project, 0), (PROJECT, 1)):
        environment = {**os.environ, "PYTHONPATH": str(place)}
        command = [sys.executable, "-c", made]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
    assert "it has the unexpected table note" in ended.stderr
    assert "use that version" in ended.stderr
