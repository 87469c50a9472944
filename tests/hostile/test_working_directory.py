"""A folder in which somebody else has put files, and in which the program happens to be started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from cascade_memory import CascadeMemory
from cascade_memory.engine import mirror_projection

mirror_projection.BUILD_ELSEWHERE = 100  # from so many cases on, a child builds
if sys.argv[2] == "fill":
    memory = CascadeMemory(sys.argv[1], embedder="hashing", learn="inline")
    memory.add([(f"query {i}", f"s{i}") for i in range(200)], progress=False)
    memory.sync()
    os._exit(0)  # Chroma is not trusted afterwards, and made anew by a child
with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline") as memory:
    memory.recall("query 3")
    seen = set()
    until = time.monotonic() + 60
    while time.monotonic() < until and not (seen and memory.health().chroma != "rebuilding"):
        seen |= {memory.health().chroma} & {"rebuilding"}
        memory.recall("query 3")
        time.sleep(0.02)
    memory.sync()
    assert seen, "a child was to build"
    assert memory.health().ok, memory.health()
    print(memory.stats().cases, *(check.detail for check in memory.data.examine() if check.name == "chroma"))
"""


@pytest.mark.slow
def test_nothing_of_the_working_directory_is_read_or_run(tmp_path: Path):
    program, here = tmp_path / "program" / "main.py", tmp_path / "here"
    program.parent.mkdir()
    here.mkdir()
    program.write_text(PROGRAM)
    marker = tmp_path / "somebody-s-code-has-run"
    for module in ("cascade_memory", "chromadb", "numpy", "sqlite3", "json", "sitecustomize", "usercustomize"):
        (here / f"{module}.py").write_text(f"open({str(marker)!r}, 'w').close()\nraise SystemExit('not the real {module}')\n")
    (here / ".env").write_text("CHROMA_API_IMPL=nobody.Here\nANONYMIZED_TELEMETRY=True\nALLOW_RESET=True\n")
    for verb in ("fill", "open"):
        command = [sys.executable, str(program), str(tmp_path / "memory"), verb]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "200 holds every case"
    assert not marker.exists()
    assert sorted(one.name for one in here.iterdir() if one.suffix != ".py") == [".env"], "nothing was written there either"
