"""Type checkers refuse misspelt and mistyped options at every door, and a language server completes the right ones."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from language_server import LanguageServer

from cascade_memory import CascadeMemory
from cascade_memory.capabilities import CAPABILITIES

PROJECT = Path(__file__).parents[2]
OPENING = (
    "reward_fun=len", "namspace='n'", "rankr='light'", "learns='off'", "ranking=Ranking(abstein=True)",
    "reward_fn=3", "learn='never'", "ranking=Ranking(candidates='many')", "retention={'retain_at': 1}", "deadline=[2]",
)  # fmt: skip
RECALLING = (
    "kk=1", "namspace='n'", "wher={}", "episode='e'", "metadat={}",
    "k='one'", "namespace=1", "where='user'", "episode_id=1", "metadata='m'",
)  # fmt: skip
REWARDING = (
    "sorce='human'", "solutions='s'", "namspace='n'", "overwrites=True", "confirm='f'",
    "solution=1", "source=1", "namespace=1", "overwrite='yes'", "confirms=1",
)  # fmt: skip
RETRIEVING = ("kk=1", "wher={}", "wheres={}", "filter={}", "search_k=1", "k='one'", "k=1.5", "where='u'", "where=1", "k=[1]")
FRAMEWORKS = {"cascade_memory.langchain": "langgraph", "cascade_memory.llama_index": "llama_index"}


def _present() -> list[str]:
    return ["cascade_memory", *(door for door, needs in FRAMEWORKS.items() if importlib.util.find_spec(needs))]


def _program() -> str:
    """Write a program with a mistake in every line that says so, and none in the others."""
    lines = ["from cascade_memory import Ranking"]
    for number, door in enumerate(_present()):
        name, memory = f"Memory{number}", f"memory{number}"
        calls = [
            (
                f"{name}(None, {{}})",
                "reward_fn=lambda episode: 1.0, namespace='n', learn='inline', embedder='hashing'",
                OPENING,
            ),
            (f"{memory}.recall('q', {{}})", "k=1, where={'a': 1}, metadata={'a': 1}", RECALLING),
            (f"await {memory}.arecall('q', {{}})", "k=1, where={'a': 1}, metadata={'a': 1}", RECALLING),
            (f"{memory}.reward('e', 1.0, {{}})", "solution='s', source='human', overwrite=True", REWARDING),
            (f"await {memory}.areward('e', 1.0, {{}})", "solution='s', source='human', overwrite=True", REWARDING),
        ]
        if door.endswith("langchain"):
            calls += [
                (f"{memory}.invoke('q', {{}})", "k=1, where={'a': 1}", RETRIEVING),
                (f"await {memory}.ainvoke('q', {{}})", "k=1, where={'a': 1}", RETRIEVING),
            ]
        lines += [f"from {door} import CascadeMemory as {name}", f"async def door{number}() -> None:"]
        lines += [f"    {memory} = {name}(embedder='hashing')"]
        for call, right, mistakes in calls:
            assert len(mistakes) == 10
            lines += [f"    {call.format(right)}", *(f"    {call.format(wrong)}  # mistake" for wrong in mistakes)]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("typed") / "program.py"
    file.write_text(_program())
    return file


def _compare(program: Path, refused: set[int]) -> None:
    lines = program.read_text().splitlines()
    mistakes = {number for number, line in enumerate(lines, start=1) if line.endswith("# mistake")}
    assert [lines[number - 1] for number in sorted(mistakes - refused)] == []  # passed although it is wrong
    assert [lines[number - 1] for number in sorted(refused - mistakes)] == []  # refused although it is right


@pytest.mark.slow
def test_pyright_refuses_every_mistake_and_nothing_else(program: Path):
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, program.name]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=program.parent).stdout)
    _compare(program, {one["range"]["start"]["line"] + 1 for one in said["generalDiagnostics"] if one["severity"] == "error"})


@pytest.mark.long  # it reads the frameworks first
def test_mypy_refuses_every_mistake_and_nothing_else(program: Path):
    pytest.importorskip("mypy")
    skipped = "torch transformers tokenizers safetensors chromadb matplotlib numpy pandas rich mcp langgraph langchain"
    patterns = ",".join(f"{name}.*" for name in skipped.split())  # not what is asked about here, and each takes long to read
    settings = program.with_name("mypy.ini")
    settings.write_text(f"[mypy]\nignore_missing_imports = True\n[mypy-{patterns}]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy", "--config-file", settings.name, "--no-error-summary", program.name]
    said = subprocess.run(command, capture_output=True, text=True, cwd=program.parent).stdout
    errors = [line.split(":") for line in said.splitlines() if f"{program.name}:" in line and " error: " in line]
    _compare(program, {int(line[1]) for line in errors})


@pytest.mark.slow
@pytest.mark.parametrize("door", _present())
def test_a_language_server_completes_the_options(door: str, tmp_path: Path):
    pytest.importorskip("pyright")
    opening = f"from {door} import CascadeMemory\nmemory = CascadeMemory('m', "
    with LanguageServer(tmp_path) as server:
        assert {"reward_fn=", "namespace=", "embedder=", "deadline=", "ranking="} <= server.completions(opening)
        grouped = f"from cascade_memory import Ranking\n{opening}ranking=Ranking("
        assert {"abstain=", "holdout=", "shadow="} <= server.completions(grouped)
        assert {"solution=", "source=", "overwrite="} <= server.completions(f"{opening})\nmemory.reward(")
        members = server.completions(f"{opening})\nmemory.")
        assert {"recall", "acting", "cases", "episodes", "report", "review", "forget"} <= members


def test_the_shared_options_are_those_of_the_engine():
    from cascade_memory.runs.adapter import SharedOptions

    engine = inspect.signature(CascadeMemory).parameters
    shared = inspect.get_annotations(SharedOptions)
    assert {name: one.__forward_arg__ for name, one in shared.items()} == {
        name: one.annotation for name, one in engine.items() if name not in ("path", "k", "embedder")
    }


def test_every_verb_of_the_memory_is_one_of_each_adapter():
    engine = {name for name in dir(CascadeMemory(embedder="hashing")) if not name.startswith("_")} - {"k", "place"}
    doors = _present()[1:]
    for door in doors:
        adapter = importlib.import_module(door).CascadeMemory
        assert engine - set(dir(adapter)) == set()
        nouns = {"cases", "episodes", "data"}
        assert all(getattr(adapter, name).__doc__ == getattr(CascadeMemory, name).__doc__ for name in nouns)
        for name in engine - nouns - {*CAPABILITIES} - {"namespace", "acting", "episode", "close", "sync", "reward", "areward"}:
            ours, theirs = getattr(adapter, name), getattr(CascadeMemory, name)
            assert inspect.signature(ours) == inspect.signature(theirs)
            assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)
            assert ours.__doc__ == theirs.__doc__


def test_dir_shows_what_is_for_users():
    shown = dir(CascadeMemory(embedder="hashing"))
    assert {"recall", "cases", "data", "__enter__", "__len__"} <= set(shown)
    assert [name for name in shown if name.startswith("_") and not name.startswith("__")] == []
    assert not {"note_failure", "shares_engine_with"} & set(dir(CascadeMemory(embedder="hashing").data))


def test_the_class_that_users_see_stays_small():
    public = [name for name in dir(CascadeMemory) if not name.startswith("_")]
    assert len({*public} - {*CAPABILITIES}) <= 22  # and one name for each capability: its noun
    assert len([one for one in CascadeMemory.__mro__ if one.__module__.startswith("cascade_memory")]) <= 3


def test_a_verb_that_is_at_a_noun_is_named():
    with pytest.raises(AttributeError, match=r"has no attribute 'quarantine': memory\.sources\.quarantine is it"):
        _ = CascadeMemory(embedder="hashing").quarantine
