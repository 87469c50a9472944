"""BFCL's multi-turn tasks: read from the installed package, played without evaluating text, judged as BFCL judges."""

from __future__ import annotations

import json
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench import stages
from cascade_memory.evaluation.bench.bfcl_stage import BFCL, query_of, tasks_of
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.environments.bfcl.calls import read_call, read_turns, write_turns
from cascade_memory.evaluation.environments.bfcl.tasks import (
    ARRIVES,
    INSTALL,
    KINDS,
    BFCLTask,
    installed_data,
    installed_tasks,
    lacking,
    read_tasks,
)
from cascade_memory.evaluation.environments.bfcl.world import MOST_CALLS, World, play

MISSING = lacking()
installed = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
FILE = "BFCL_v4_multi_turn_base.json"
ENTRY: dict[str, Any] = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Add 2 and 3."}]],
    "initial_config": {},
    "involved_classes": ["MathAPI"],
}
ANSWER: dict[str, Any] = {"id": "multi_turn_base_0", "ground_truth": [["add(a=2, b=3)"]]}


def right_of(task: BFCLTask) -> list[list[str]]:
    return [[str(call) for call in calls] for calls in task.right]


def files(folder: Path, entry: Any = ENTRY, answer: Any = ANSWER) -> Path:
    (folder / "possible_answer").mkdir()
    for path, line in ((folder / FILE, entry), (folder / "possible_answer" / FILE, answer)):
        path.write_text(line if isinstance(line, str) else json.dumps(line))
    return folder


def test_a_task_is_read_with_its_turns_and_calls(tmp_path: Path):
    (task,) = read_tasks(files(tmp_path), "base")
    assert (task.number, task.turns, task.solution) == (0, ("Add 2 and 3.",), "turn 1: add(a=2, b=3)")


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        ("no JSON", ANSWER),
        ("[" * 100_000, ANSWER),
        ("[]", ANSWER),
        ("", ANSWER),
        (ENTRY, {**ANSWER, "id": "multi_turn_base_1"}),
        (ENTRY, {"id": ANSWER["id"]}),
        (ENTRY, {**ANSWER, "ground_truth": [["add(a=2, b=3)"], []]}),
        (ENTRY, {**ANSWER, "ground_truth": [["__import__('os').getcwd()"]]}),
        (ENTRY, {**ANSWER, "ground_truth": "add(a=2, b=3)"}),
        ({**ENTRY, "involved_classes": ["WebSearchAPI"]}, ANSWER),
        ({**ENTRY, "involved_classes": "MathAPI"}, ANSWER),
        ({**ENTRY, "initial_config": 3}, ANSWER),
        ({**ENTRY, "question": [[]]}, ANSWER),
        ({**ENTRY, "question": [[{"role": "system", "content": "a"}]]}, ANSWER),
        ({**ENTRY, "question": [[{"role": "user", "content": 3}]]}, ANSWER),
        ({**ENTRY, "missed_function": {"0": ["add"]}}, ANSWER),
        ({**ENTRY, "id": "a task"}, {**ANSWER, "id": "a task"}),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, entry: Any, answer: Any):
    message = "is not JSON|holds no tasks|needs an|do not have the same tasks|holds something other than a multi-turn task"
    with pytest.raises(InvalidInput, match=message):
        read_tasks(files(tmp_path, entry, answer), "base")


def test_a_missing_file_or_kind_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="cannot read"):
        read_tasks(tmp_path, "base")
    with pytest.raises(InvalidInput, match="it has base, miss_param"):
        read_tasks(tmp_path, "composite")


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys):
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert INSTALL in str(lacking())
    with pytest.raises(MissingExtra, match="pip install --no-deps bfcl-eval=="):
        installed_data()
    assert INSTALL in str(stages.lacking("bfcl", tmp_path))
    play_it = ["bench", "run", "--suite", "board", "--out", str(tmp_path / "rows.jsonl"), "--data", str(tmp_path)]
    assert main(play_it) == 2
    assert INSTALL in capsys.readouterr().err
    monkeypatch.setattr(metadata, "version", lambda name: "2025.1.1")
    assert "not 2025.1.1" in str(lacking())


def test_the_catalogue_names_source_and_licence(tmp_path: Path, capsys):
    assert main(["bench", "data", "bfcl", "--data", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert INSTALL in told
    assert "Apache-2.0" in told


@installed
def test_the_files_have_what_is_expected_of_them():
    for kind in KINDS:
        tasks = installed_tasks(kind)
        assert [task.number for task in tasks] == list(range(200))
        assert all(read_turns(task.solution) == task.right for task in tasks)


@installed
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_calls_are_right_and_none_are_not(kind: str):
    tasks = installed_tasks(kind)[::20]
    assert all(play(task, right_of(task)).success for task in tasks)
    assert not any(play(task, []).success for task in tasks)


@installed
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_calls_of_all_tasks_are_right_and_none_are_not(kind: str):
    tasks = installed_tasks(kind)
    assert all(play(task, right_of(task)).success for task in tasks)
    assert not any(play(task, []).success for task in tasks)


@installed
@pytest.mark.parametrize("kind", ["base", "long_context"])
def test_the_same_calls_return_the_same_whatever_was_played_before(kind: str):
    tasks = installed_tasks(kind)[3::20]
    first = [play(task, right_of(task)) for task in tasks]
    again = [play(task, right_of(task)) for task in reversed(tasks)]
    assert repr(first) == repr(again[::-1])


@installed
def test_the_judgement_is_that_of_bfcl_s_own_checker():
    checker = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    entries = {}
    for kind in ("base", "miss_func"):
        lines = (installed_data() / f"BFCL_v4_multi_turn_{kind}.json").read_text(encoding="utf-8").splitlines()
        entries[kind] = [json.loads(line) for line in lines]
    judged = set()
    for kind, listed in entries.items():
        for task, entry in list(zip(installed_tasks(kind), listed, strict=True))[5::40]:
            right = right_of(task)
            changed = [calls[:-1] for calls in right], [calls[::-1] for calls in right], [[], *right[1:]]
            for number, calls in enumerate((right, *changed, [[*one, "unknown()"] for one in right])):
                steps = [[one] if one else [] for one in calls]
                told = checker.multi_turn_checker(steps, right, entry, f"multi_turn_{kind}", f"test-{number}")
                assert play(task, calls).success is told["valid"], (task.name, calls)
                judged.add(told["valid"])
    assert judged == {True, False}


HOSTILE = {
    "open('a.txt', 'w')": "there is no function 'open'",
    "_load_scenario({})": "there is no function '_load_scenario'",
    "__class__()": "there is no function '__class__'",
    "ls.__globals__": "only a function itself can be called",
    "ls.__globals__.get('x')": "only a function itself can be called",
    "GorillaFileSystem.ls()": "only a function itself can be called",
    "(lambda: 1)()": "only a function itself can be called",
    "import os": "only a function itself can be called",
    "mkdir(dir_name=pwd())": "must be a plain value",
    "mkdir(dir_name=secret)": "must be a plain value",
    "mkdir(dir_name=f'{1}')": "must be a plain value",
    "mkdir(*['a'])": "must be a plain value",
    "mkdir(**{'dir_name': 'a'})": "needs a name of its own",
    "mkdir(dir_name=b'a')": "not of the type bytes",
    "mkdir(dir_name={'a'})": "not of the type set",
    "add(a=1j, b=1)": "not of the type complex",
    "add(a=1e999, b=1)": "a number must be between",
    "add(a=[1, {'b': 9999999999999999}], b=1)": "a number must be between",
    f"add(a={'9' * 6_000}, b=1)": "this is no call",
    "power(base=10, exponent=1000000000)": "exponent must be between -1000 and 1000",
    "logarithm(2, 10, 1000000000)": "precision must be between",
    "power(base=10, exponents=2)": "exponents",
    "ls(); ls()": "one call is needed, not 2",
    "": "one call is needed, not 0",
    "ls(": "this is no call",
    "\0": "this is no call",
    f"mkdir(dir_name='{'a' * 30_000}')": "may have 20,000 characters",
    f"mkdir(dir_name={'[' * 50}1{']' * 50})": "up to 20 deep",
    f"mkdir(dir_name={'[' * 5_000})": "this is no call",
    f"mkdir(dir_name={'-' * 9_000}1)": "this is no call|must be a plain value",
}


@installed
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_a_call_of_anything_else_is_refused_with_a_sentence(text: str):
    task = next(task for task in installed_tasks("base") if set(task.classes) == {"GorillaFileSystem", "MathAPI"})
    world = World(task)
    before = repr(world.systems["GorillaFileSystem"].root)
    said = world.call(text)
    assert said.startswith("Error during execution: ")
    assert any(one in said for one in HOSTILE[text].split("|")), said
    assert repr(world.systems["GorillaFileSystem"].root) == before
    assert not world.call("ls()").startswith("Error")  # the run goes on


@installed
def test_the_number_of_calls_is_limited():
    world = World(installed_tasks("base")[0])
    said = {world.call("pwd()") for _ in range(MOST_CALLS)}
    assert len(said) == 1
    assert world.call("pwd()") == f"Error during execution: a task may be solved with {MOST_CALLS} calls"


@installed
def test_twins_have_nearly_the_same_text_and_their_calls_in_other_turns():
    twins = list(zip(installed_tasks("base"), installed_tasks("miss_func"), strict=True))
    for base, twin in twins[::20]:
        assert base.solution != twin.solution
        assert not play(twin, right_of(base)).success
        assert not play(base, right_of(twin)).success
    base, twin = twins[0]
    assert [said for said in twin.turns if said not in base.turns] == [f"sort: {ARRIVES}"]
    assert [call for calls in twin.right for call in calls] == [call for calls in base.right for call in calls]


@installed
def test_tasks_with_which_the_agent_was_developed_are_not_compared():
    for stream in BFCL:
        aside, others = ({task.number for task in tasks_of(stream, aside=one)} for one in (True, False))
        assert (len(aside), len(others)) == (60, 140)
        assert not aside & others
    assert len(tasks_of("bfcl", aside=False)) == 4 * 140


@installed
@pytest.mark.slow
def test_the_stream_is_played_and_played_the_same_again(tmp_path: Path):
    runs = [Run("bfcl-twins", method, seed=0, limit=40, solver="reuse") for method in ("zero-shot", "similarity", "CASCADE")]
    first, again = (run(runs, tmp_path, tmp_path / name, progress=False) for name in ("first", "again"))
    for one, other in zip(first, again, strict=True):
        assert {**one, "ms_per_task": 0, "seconds": 0} == {**other, "ms_per_task": 0, "seconds": 0}
        assert one["declared"] == {"alone": 0.2}
        assert all(had <= got for had, got in zip(one["alone"], one["success"], strict=True))
    assert first[0]["success"] == first[0]["alone"]


@installed
def test_a_query_has_no_password():
    said = [query_of(task) for task in installed_tasks("base")]
    assert sum("[secret:password#1]" in one for one in said) >= 5
    assert not any("\n" in turn for task in installed_tasks("base") for turn in task.turns)


def test_calls_that_are_written_are_read_again():
    calls = [[read_call("echo('turn 2: a;\\nb', \"it's\")")], [], [read_call("f()"), read_call("g(x=[1, (2.5, None)])")]]
    assert [list(turn) for turn in read_turns(write_turns(calls))] == calls
    for other in ("", "turn 2: f()", "turn 1: f(", "1: f()", "anything"):
        with pytest.raises(InvalidInput):
            read_turns(other)
