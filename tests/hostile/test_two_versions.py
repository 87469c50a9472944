"""Two versions of the library on one folder: the older one does nothing more once the newer one has upgraded it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.errors import SchemaTooNew, StoreReplaced
from cascade_memory.ledger.schema import SCHEMA_VERSION

# A library that is one version ahead. Its step changes rows only, so the tables are still those that this version checks.
_NEWER = """
import json, sys
from cascade_memory.ledger import opening, schema, structure, upgrade
for module in (opening, schema, structure, upgrade):
    module.SCHEMA_VERSION += 1
upgrade.STEPS[schema.SCHEMA_VERSION - 1] = ("UPDATE cases SET copies = copies",)
from cascade_memory import CascadeMemory
with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline") as memory:
    print("open", flush=True)
    for line in sys.stdin:
        memory.add(line.strip(), "what the newer version knows")
        recall = memory.recall("reset a password")
        memory.reward(recall.episode_id, 1.0)
        print(json.dumps([len(recall.cases), memory.stats().cases, all(one.ok for one in memory.data.examine())]), flush=True)
"""


def _newer(folder: Path) -> subprocess.Popen[str]:
    root = str(Path(sys.modules["cascade_memory"].__file__ or "").parents[1])
    program = f"import sys; sys.path.insert(0, {root!r})\n{_NEWER}"
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _work(newer: subprocess.Popen[str], task: str) -> list[object]:
    assert newer.stdin is not None
    assert newer.stdout is not None
    newer.stdin.write(f"{task}\n")
    newer.stdin.flush()
    return json.loads(newer.stdout.readline())


def test_an_older_version_does_nothing_more_once_a_newer_one_has_upgraded_the_folder(tmp_path: Path):
    folder = tmp_path / "memory"
    older = CascadeMemory(folder, embedder="hashing", learn="inline")
    older.add("reset a password", "press reset")
    waiting = older.recall("reset my password").episode_id
    with _newer(folder) as newer:
        assert newer.stdout is not None
        assert newer.stdout.readline() == "open\n"
        for write in (
            lambda: older.add("another task", "another solution"),
            lambda: older.reward(waiting, 1.0),
            lambda: older.forget(everything=True),
        ):
            with pytest.raises(StoreReplaced, match="upgraded by a newer version of this library"):
                write()
        with pytest.warns(RuntimeWarning, match="upgraded by a newer version"):
            assert older.recall("reset a password").cases == ()  # the agent works on without a memory
        shown, cases, sound = _work(newer, "change an address")
        assert (shown, cases, sound) == (1, 2, True)
        older.close()
        assert _work(newer, "change a name")[1:] == [3, True]
        with pytest.raises(SchemaTooNew, match=f"has schema version {SCHEMA_VERSION + 1}"):
            CascadeMemory(folder, embedder="hashing")
        assert newer.stdin is not None
        newer.stdin.close()
        assert newer.wait(timeout=60) == 0
