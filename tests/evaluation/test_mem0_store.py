"""mem0 as a rival: what it shows and keeps, that it stays off the network and out of the home, and what is said without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation import FileTask, Simulated, measure
from cascade_memory.evaluation.bench.plan import SUITES
from cascade_memory.evaluation.rivals.known import is_rival, rival_named
from cascade_memory.evaluation.rivals.mem0_store import Mem0

NAME = "mem0's store"
CUP, LAMP, DESK = ("wash the red cup", "sink"), ("switch on the lamp", "switch"), ("clean the big desk", "cloth")
# A process of its own, since mem0 writes while it is imported. Whoever wants a connection gets an error, and is noted.
ALONE = """
import json, socket, sys

wanted = []

def refused(*given, **named):
    wanted.append(repr(given[-1:]))
    raise OSError("there is no network here")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refused
before = {**__import__("os").environ}
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.rivals.mem0_store import Mem0

memory = Mem0(HashingEmbedder())
memory.recall("wash the cup")
memory.reward("wash the red cup", (), "sink", 1.0)
shown = memory.recall("wash the cup")
memory.close()
print(json.dumps({"wanted": wanted, "shown": shown, "same": before == {**__import__("os").environ}}))
"""


# An import to find out whether it is installed would write into the home of who runs the tests.
installed = pytest.mark.skipif(
    find_spec("mem0") is None or any(map(find_spec, ("spacy", "fastembed"))), reason="needs mem0ai without spaCy and fastembed"
)


@pytest.fixture
def mem0() -> Iterator[Mem0]:
    memory = Mem0(HashingEmbedder())
    yield memory
    memory.close()


def stream(folder: Path) -> FileTask:
    lines = [{"task": f"ticket {n} about a {word}", "label": word} for n in range(12) for word in ("cup", "lamp", "desk")]
    (folder / "stream.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return FileTask(name="stream", file="stream.jsonl", judge=lambda reply, label: float(reply == label), instruction="Answer.")


@installed
@pytest.mark.slow
def test_it_shows_the_most_similar_success(mem0: Mem0):
    assert list(mem0.recall(CUP[0])) == []
    for task, solution in (CUP, LAMP, DESK):
        mem0.reward(task, (), solution, 1.0)
    for case in (CUP, LAMP, DESK):
        assert list(mem0.recall(case[0])) == [case]
    assert list(mem0.recall("wash the blue cup")) == [CUP]


@installed
@pytest.mark.slow
def test_a_failure_is_never_shown(mem0: Mem0):
    mem0.reward(CUP[0], (), "oven", 0.0)
    mem0.reward(CUP[0], (), "oven", 0.5)
    assert list(mem0.recall(CUP[0])) == []


@installed
@pytest.mark.slow
def test_two_of_them_share_nothing(mem0: Mem0):
    other = Mem0(HashingEmbedder())
    mem0.reward(CUP[0], (), CUP[1], 1.0)
    assert list(other.recall(CUP[0])) == []
    other.close()
    assert list(mem0.recall(CUP[0])) == [CUP]


@installed
@pytest.mark.slow
@pytest.mark.usefixtures("mem0")
def test_two_runs_are_equal(tmp_path: Path):
    task = stream(tmp_path)
    first, second = (
        measure(
            task,
            data=tmp_path,
            solver=Simulated(alone=0.3),
            methods=[NAME, "similarity"],
            seeds=2,
            out=tmp_path / f"{name}.jsonl",
            progress=False,
        )
        for name in ("first", "second")
    )
    assert {row["method"] for row in first} == {NAME, "similarity"}
    assert [(row["success"], row["shown"]) for row in first] == [(row["success"], row["shown"]) for row in second]
    assert all(row["cases"] == row["success"].count("1") for row in first if row["method"] == NAME)


@installed
@pytest.mark.slow
def test_it_opens_no_connection_and_leaves_nothing_at_home(tmp_path: Path):
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEM0_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=home,
        env={**environment, "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout) == {"wanted": [], "shown": [list(CUP)], "same": True}
    assert list(home.rglob("*")) == list(temporary.rglob("*")) == []


def test_without_mem0_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mem0", None)  # as if it were not installed
    with pytest.raises(InvalidInput, match=r"needs another package: pip install mem0ai$"):
        measure(
            stream(tmp_path), data=tmp_path, solver=Simulated(alone=0.3), methods=[NAME], seeds=1, out=tmp_path / "rows.jsonl"
        )


@pytest.mark.parametrize("chosen", ["True", "1", "yes"])
def test_a_wish_for_telemetry_is_refused_and_not_overruled(chosen: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEM0_TELEMETRY", chosen)
    with pytest.raises(InvalidInput, match="MEM0_TELEMETRY"):
        Mem0(HashingEmbedder())
    assert os.environ["MEM0_TELEMETRY"] == chosen


@installed
@pytest.mark.slow
@pytest.mark.usefixtures("mem0")
def test_telemetry_that_is_on_already_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mem0.memory.telemetry.MEM0_TELEMETRY", True)
    with pytest.raises(InvalidInput, match="before anything imports it"):
        Mem0(HashingEmbedder())


@pytest.mark.parametrize("name", ["spacy", "fastembed"])
def test_it_is_not_played_where_mem0_would_download_a_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module in (name, "mem0"):
        (tmp_path / f"{module}.py").touch()
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=f"mem0 would download models for .*{name}"):
        Mem0(HashingEmbedder())


def test_it_is_known_by_its_name_and_in_no_suite():
    assert is_rival(NAME)
    assert rival_named(NAME) is Mem0
    assert not any(NAME in suite.methods for suite in SUITES.values())
