"""DTLBench's twelve tasks that are asked and answered: read as published, worded fairly, judged strictly, and played."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dtlbench import ASKED, published, right_replies
from faulty_server import KEY, serving
from hostile_replies import ANYWHERE, to_a_question, to_a_set, to_an_object, to_entities, to_one_label
from shown_prompts import SHOWN, case_of, shown

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.stage import best_embedder, catalogued
from cascade_memory.evaluation.judging.literals import read_literal
from cascade_memory.evaluation.model import Asking, Model, OpenAICompatible
from cascade_memory.evaluation.model.chat import Reply
from cascade_memory.evaluation.model.model_solver import ModelSolver, ShowsExamples, messages_for
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, task_named
from cascade_memory.evaluation.tasks.dtlbench import DTLBENCH
from cascade_memory.evaluation.tasks.task import Item, Task

TEXTS = ("ddxplus", "mimic-iv-msr", "mimic-iv-tlp", "banking77", "rca", "lfd")
SQL = ("spider", "bird")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("dtlbench"))


@pytest.fixture(params=ASKED)
def task(request: pytest.FixtureRequest) -> Iterator[Task]:
    made = task_named(request.param)
    yield made
    getattr(made, "close", lambda: None)()


def right_reply(task: Task, item: Item) -> str:
    """Return the right answer in the form that the task asks for."""
    label = item.label[0] if task.name == "mimic-iv-msr" and isinstance(item.label, list) else item.solution
    assert isinstance(task, ShowsExamples)
    return task.example(label)


def options_in(told: str) -> list[str]:
    return [line.removeprefix("- ").split(": ")[0] for line in told.splitlines() if line.startswith("- ")]


def wrong_replies(task: Task, item: Item) -> list[str]:
    options = options_in(item.context)
    if task.name in TEXTS:
        right = item.label[0] if isinstance(item.label, list) else item.solution
        return to_one_label(right, [one for one in options if one == right or one not in item.solution])
    if task.name in SQL:
        return to_a_question(item.label)
    if task.name == "sentifin":
        return to_entities(item.label)
    return to_a_set(item.label, options) if task.name == "mimic-iv-mr" else to_an_object(item.label)


def test_the_right_answer_earns_one_and_a_hostile_one_nothing(task, folder):
    items = task.items(folder)
    for item in items:
        for dressed in ("{}", "Well.\n\n{}\n", "  {}  "):
            assert task.reward(dressed.replace("{}", right_reply(task, item)), item) == 1.0
    item = items[2 if task.name == "bird" else 0]
    hostile = [*ANYWHERE, *wrong_replies(task, item)]
    assert len(set(hostile)) >= 20 + len(wrong_replies(task, item)) - 3
    for reply in hostile:
        began = time.process_time()
        assert task.reward(reply, item) == 0.0, reply[:200]
        assert time.process_time() - began < 5
    assert task.reward(right_reply(task, item), item) == 1.0  # nothing was written by them


def test_what_is_hostile_leaves_the_databases_alone(folder):
    def digest() -> list[str]:
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.sqlite*"))]

    before = digest()
    for name in SQL:
        task = task_named(name)
        item = task.items(folder)[0]
        assert all(task.reward(reply, item) == 0.0 for reply in to_a_question(item.label))
        task.close()
    assert digest() == before
    assert not Path("/tmp/stolen.sqlite").exists()


@pytest.mark.parametrize("name", ["mud", "cmdl", "mimic-iv-mr", "sentifin"])
def test_answers_quoted_as_in_python_are_judged(name, folder):
    task = task_named(name)
    for item in task.items(folder):
        written = "\n".join(map(repr, item.label)) if name == "sentifin" else repr(item.label)
        for reply in (written, f"```json\n{written}\n```", f"```python\n{written}\n```", f"```\n{written}\n```"):
            assert task.reward(reply, item) == 1.0
        stored = task.answer(written)
        assert json.loads(stored) == item.label
        assert stored == task.answer(json.dumps(item.label))  # however it was written, the case is the same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, true, null]}', {"a": [1, -2.5, True, None]}),
        ("{'a': (1, -2.5, True, None,), 'b': {}}", {"a": [1, -2.5, True, None], "b": {}}),
        (r"""['it\'s', "it's", '\u00e9\x41\n\\', 'é']""", ["it's", "it's", "éA\n\\", "é"]),
        ("{1: 'a'}", {"1": "a"}),
        ("[1 2]", None),
        ("[1,,2]", None),
        ("{'a': 1, 'a': 2}", None),
        ("{'a': f()}", None),
        ("{'a'}", None),
        ("[x for x in ()]", None),
        ("'a' * 10**9", None),
        ("[1e999]", None),
        ("['open", None),
        ("[" * 40 + "]" * 40 + "'", None),
        ("['a'] and more", None),
        ("[0x10]", None),
        ("[NaN]", None),
        ("[-Infinity]", None),
        ("", None),
    ],
)
def test_literals(text, value):
    assert read_literal(text) == value


def test_a_model_is_told_the_same_whatever_cases_are_shown_and_the_memory_keeps_the_bare_task(task, folder):
    items = task.items(folder)
    item, case = items[-1], items[0]
    failed = case_of(case, solution=items[1].solution, failed=True)
    alone, helped, mixed = (messages_for(task, item, cases) for cases in ((), [case_of(case)], [failed, case_of(case)]))
    assert alone[0] == helped[0] == mixed[0] == {"role": "system", "content": item.context}
    for messages in (helped, mixed):
        assert messages[1]["content"].endswith(alone[1]["content"])
        assert case.query in messages[1]["content"]
        assert task.example(case.solution) in messages[1]["content"]
    assert "Solved cases" in helped[1]["content"]
    assert "Solved cases" not in mixed[1]["content"]
    assert "Answer that was wrong:" in mixed[1]["content"]
    assert "\nSolution:\n" in mixed[1]["content"]
    rows = [json.loads(line) for line in (folder / DTLBENCH[task.name].files[0]).read_text(encoding="utf-8").splitlines()]
    bare = [row["task"] + (f"\nKnowledge: {row['evidence']}" if row.get("evidence") else "") for row in rows]
    assert [one.query for one in items] == bare
    if task.name in SQL:
        assert "CREATE TABLE" in item.context
    else:
        told = set(options_in(item.context))
        assert len(told) == {"mimic-iv-mr": 122, "mimic-iv-msr": 19, "mimic-iv-tlp": 5, "mud": 22, "cmdl": 6}.get(task.name, 3)


def test_what_a_model_is_shown(task, folder):
    kept = (SHOWN / f"{task.name}.txt").read_text(encoding="utf-8")
    assert shown(task, task.items(folder)) == kept, "python tests/helpers/shown_prompts.py writes it anew"


def test_options_that_are_not_published_are_all_labels_of_the_file(tmp_path):
    task = task_named("banking77")
    path = tmp_path / "banking77.jsonl"
    path.write_text("\n".join(json.dumps({"task": f"t{n}", "label": f"intent_{n % 7}\u202e"}) for n in range(30)))
    assert options_in(task.items(tmp_path)[0].context) == [f"intent_{n}<U+202E>" for n in range(7)]
    path.write_text("\n".join(json.dumps({"task": f"t{n}", "label": f"intent {n}"}) for n in range(1_001)))
    with pytest.raises(InvalidInput, match=r"1,001 different labels.*the file of another task"):
        task.items(tmp_path)


class Scripted:
    """A model that always says the same."""

    name, settings = "scripted", {}

    def __init__(self, say: str) -> None:
        self.say = say

    def complete(self, messages: Any, note: Any) -> Reply:
        return Reply(self.say)


def test_a_truth_that_is_revealed_becomes_the_case(folder):
    task = task_named("mimic-iv-mr")
    items = task.items(folder)
    lucky = ModelSolver(task, items, Asking(Scripted('["opioids"]'))).attempt(0, ())
    assert (lucky.success, json.loads(str(lucky.answer))) == (True, items[0].label)
    wrong = ModelSolver(task, items, Asking(Scripted("['cardiac glycosides']"))).attempt(0, ())
    assert (wrong.success, wrong.answer) == (False, '["cardiac glycosides"]')
    assert [name for name in ASKED if getattr(task_named(name), "reveals_truth", False)] == ["mimic-iv-mr"]


def test_both_layouts_are_read_and_the_published_one_first(folder, tmp_path):
    for name in ASKED:
        if name not in SQL:
            flat = tmp_path / CATALOGUE[name].files[0]
            flat.write_bytes((folder / DTLBENCH[name].files[0]).read_bytes())
            assert CATALOGUE[name].is_there(tmp_path)
            assert [one.query for one in task_named(name).items(tmp_path)] == [
                one.query for one in task_named(name).items(folder)
            ]
    published(tmp_path)
    (tmp_path / "rca" / "rca.jsonl").write_text('{"task": "the published one", "label": "EventTrap"}')
    assert [item.query for item in task_named("rca").items(tmp_path)] == ["the published one"]


@pytest.mark.parametrize("name", ["../../coast", "coast/../coast", "", ".", "nowhere", "*"])
def test_a_database_is_found_by_a_plain_name_only(name, folder, tmp_path):
    data = published(tmp_path)
    (data / "spider" / "spider.jsonl").write_text(json.dumps({"task": "Who?", "query": "SELECT 1", "db_id": name}))
    task = task_named("spider")
    with pytest.raises(InvalidInput, match="does not contain"):
        task.items(data)
    task.close()


@pytest.fixture
def closed_afterwards() -> Iterator[None]:
    """A benchmark keeps the databases of its tasks open until its process ends; this one goes on."""
    yield
    for name in SQL:
        catalogued(name).close()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.long
def test_every_task_is_played_by_one_command_in_the_order_of_its_file(folder, tmp_path, monkeypatch, capsys, closed_afterwards):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    replies = right_replies(folder)

    def say(prompt: str) -> str:
        return replies[re.split(r"--- memory-\w+ end\n", prompt)[-1]]

    with serving(say) as server:
        where = ["--model", "tiny", "--base-url", server.url, "--data", str(folder), "--out", str(tmp_path / "rows.jsonl")]
        what = ["--tasks", *ASKED, "--methods", "zero-shot", "similarity", "--seeds", "2", "--order", "file", "--jobs", "1"]
        assert main(["bench", "run", *what, *where, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert len(rows) == 12 * 2 * 2
        assert {(row["rate"], row["order"]) for row in rows} == {(1.0, "file")}
        for name in ASKED:
            first, *others = (
                {row["stream"] for row in rows if (row["task"], row["seed"]) == (name, seed)} for seed in range(2)
            )
            assert len(first) == 1
            assert others == [first]
        told = [one["messages"][0]["content"] for one in server.asked]
        assert all(re.search(r"\n- |CREATE TABLE", one) for one in told)
        chat = OpenAICompatible(base_url=server.url, model="tiny")
        with pytest.raises(InvalidInput, match=r"another order \(--order file\)"):
            measure("rca", data=folder, solver=Model(chat=chat), out=tmp_path / "rows.jsonl", methods=["zero-shot"], seeds=1)
        with pytest.raises(InvalidInput, match="the order must be"):
            measure("rca", data=folder, solver=Model(chat=chat), out=tmp_path / "other.jsonl", order="sorted")


def test_a_shuffled_stream_differs_from_seed_to_seed(folder, tmp_path):
    from cascade_memory.evaluation import Simulated

    rows = measure(
        "banking77", data=folder, solver=Simulated(alone=0.5), out=tmp_path / "rows.jsonl", methods=["zero-shot"], seeds=2
    )
    assert len({row["stream"] for row in rows}) == 2


def test_the_catalogue_says_of_each_of_the_sixteen_where_it_is_and_what_to_run(folder, capsys):
    assert main(["bench", "data", "--data", str(folder), "--json"]) == 0
    told = {one["task"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(DTLBENCH) <= set(told)
    assert len(DTLBENCH) == 16
    assert sum(one.samples for one in DTLBENCH.values()) == 39_914
    for name in DTLBENCH:
        assert all(
            told[name][field] for field in ("DTLBench", "original", "licence", "files", "format", "fields", "order", "run")
        )
        assert ("physionet" in told[name]["DTLBench"]) is name.startswith("mimic-iv-")
        assert told[name]["steps"] == {**dict.fromkeys(ASKED, 1), "alfworld": 30, "scienceworld": 30}.get(name, 5)
    assert {name for name in ASKED if told[name]["there"]} == set(ASKED)
    assert main(["bench", "data", "--data", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert all(f"\ntask       {name}\n" in printed for name in DTLBENCH)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.long
def test_no_two_questions_about_a_database_of_spider_have_one_vector(data):
    task = task_named("spider")
    items = task.items(data)
    task.close()
    vectors = best_embedder().embed([item.query for item in items])
    by_vector: dict[tuple[Any, bytes], str] = {}
    for item, vector in zip(items, vectors, strict=True):
        question = " ".join(item.query.split()).casefold()
        other = by_vector.setdefault((item.fields["db_id"], vector.round(6).tobytes()), question)
        assert other == question
    assert len({item.fields["db_id"] for item in items}) == 19
