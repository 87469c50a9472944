"""The capability in ``examples/capability``: its folder and three lines make it a part of the package, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from with_notes import EXAMPLE, PROJECT, run_in, with_notes


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = with_notes(tmp_path_factory.mktemp("project"))
    (made / "tests").mkdir()
    shutil.copy(EXAMPLE / "test_notes.py", made / "tests")
    return made


def passed(project: Path, *arguments: str) -> bool:
    options = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir", project, "-p", "no:cacheprovider")
    ended = run_in(project, *options, *arguments)
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-2_000:]
    return "passed" in ended.stdout


@pytest.mark.slow
def test_its_own_tests_pass(project: Path):
    pytest.importorskip("starlette")
    assert passed(project, "tests")


@pytest.mark.slow
def test_its_examples_do_what_they_say(project: Path):
    pytest.importorskip("jinja2")
    assert passed(project, "--doctest-modules", "cascade_memory/capabilities")


@pytest.mark.slow
def test_a_memory_with_its_tables_is_refused_where_it_is_missing(project: Path, tmp_path: Path):
    opens = "from cascade_memory import CascadeMemory; CascadeMemory('m', embedder='hashing').close()"
    assert run_in(project, "-c", opens, at=tmp_path).returncode == 0
    without = run_in(PROJECT, "-c", opens, at=tmp_path)
    assert without.returncode == 1
    assert "it has the unexpected table note" in without.stderr
    assert "use that version" in without.stderr


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["langchain", "llama_index"])
def test_the_adapters_have_its_noun(project: Path, adapter: str):
    pytest.importorskip(adapter)
    uses = f"""
from cascade_memory.{adapter} import CascadeMemory
with CascadeMemory(embedder="hashing") as memory:
    case_id = memory.add("reset the router", "hold the button")
    memory.notes.pin(case_id, "only the grey one")
    print([note.text for note in memory.notes.all()])
"""
    ended = run_in(project, "-c", uses)
    assert ended.stdout == "['only the grey one']\n", ended.stderr
