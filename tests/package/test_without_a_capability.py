"""Without the folder of a capability and its three lines, the package does all else that it did."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from with_notes import PROJECT, run_in

from cascade_memory.capabilities import CAPABILITIES

# Test files that name the capability are its own. So are those that go through lists of all verbs, commands and pages.
_NAMES = {
    "models": r"\bmodels\.(all|answered)|models?_of\(",
    "otel": r"\botel\b",
    "review": r"\breview\b|audit|undo",
    "scores": r"\bscores\b",
    "sources": r"\bsources\b|quarantine",
    "traces": r"\btraces\b|trace_id",
    "warnings": r"\b[Ww]arnings?\b",
}
_OF_ALL = {"test_edited_everywhere.py"}
_ROOMS = (
    "bandit",
    "concurrency",
    "conversation",
    "cycle",
    "encoders",
    "hostile",
    "langchain",
    "llama_index",
    "mcp_server",
    "memory",
    "stores",
)


def without(capability: str, project: Path) -> Path:
    """Copy the package and its tests, and take a capability out."""
    for folder in ("cascade_memory", "tests", "examples", "docs"):
        shutil.copytree(PROJECT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "CHANGELOG.md", "constraints.txt", "mkdocs.yml"):
        shutil.copy(PROJECT / file, project)
    listed = project / "cascade_memory" / "capabilities" / "__init__.py"
    shutil.rmtree(listed.parent / capability)
    its = re.compile(rf'    "{capability}",|    from .*capabilities\.{capability}\..*|        {capability}: \w+')
    lines = listed.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not its.fullmatch(line)]
    assert len(lines) - len(kept) == 3
    listed.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return project


def passes(project: Path, *tests: str | Path) -> None:
    marks = ("-m", "not slow and not long and not postgres")
    ended = run_in(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *marks, *tests)
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-2_000:]


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_memory_recalls_learns_and_travels(capability: str, tmp_path: Path):
    does = f"""
from cascade_memory import CascadeMemory
with CascadeMemory("memory", embedder="hashing", learn="inline") as memory:
    memory.add("cool some mug", "put it into the fridge")
    recall = memory.recall("cool a mug")
    recall.reward(1.0, solution="put it into the freezer")
    assert memory.stats().cases == 2
    assert not hasattr(memory, "{capability}")
    memory.data.export("all.jsonl")
    memory.forget(case_ids=recall.cases[0].id, purge=True)
with CascadeMemory(embedder="hashing") as other:
    print(other.data.import_("all.jsonl") > 0, len(other))
"""
    ended = run_in(without(capability, tmp_path), "-c", does)
    assert ended.stdout == "True 2\n", ended.stderr
    helped = run_in(tmp_path, "-m", "cascade_memory", "--help")
    assert helped.returncode == 0, helped.stderr


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_all_other_tests_pass(capability: str, tmp_path: Path):
    project = without(capability, tmp_path)
    files = [file for room in _ROOMS for file in sorted((project / "tests" / room).glob("test_*.py"))]
    others = [file for file in files if file.name not in _OF_ALL and not re.search(_NAMES[capability], file.read_text("utf-8"))]
    assert len(others) > len(files) / 3
    passes(project, *others)
