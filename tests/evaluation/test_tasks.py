"""Streams in files: what is read, what is refused, and the catalogue of the paper's tasks."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
from pathlib import Path

import pytest

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.model.model_solver import messages_for
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, task_named
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.task import FileTask, Item, read_items

# A line of each task that is asked and answered, in the format of its file, and the reply that is right.
FIXTURES = {
    "ddxplus": ("GERD", r"\boxed{gerd}"),
    "mimic-iv-mr": (["aspirin", "insulin"], r'\boxed{["insulin", "heparin"]}'),
    "mimic-iv-msr": ("Cardiology", r"\boxed{cardiology}"),
    "mimic-iv-tlp": ("3", r"\boxed{3}"),
    "mud": ({"Defendant A": "fraud"}, "```json\n{'Defendant A': 'Fraud'}\n```"),
    "cmdl": ({"Chu": "6 months"}, r'\boxed{{"Chu": "6 months"}}'),
    "banking77": ("card arrival", r"\boxed{card_arrival}"),
    "sentifin": ([{"entity": "Yuan", "label": "negative"}], r'\boxed{[{"entity": "Yuan", "label": "negative"}]}'),
    "rca": ("PTP", r"\boxed{PTP}"),
    "lfd": ("normal", r"\boxed{normal}"),
}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", list(FIXTURES))
def test_a_task_of_the_paper_is_read_asked_and_judged(name, tmp_path):
    label, right = FIXTURES[name]
    (file,) = CATALOGUE[name].files
    write(tmp_path / file, {"task": "what is it?", "label": label, "orig_index": 7})
    task = task_named(name)
    (item,) = task.items(tmp_path)
    assert (item.query, item.label, item.fields["orig_index"]) == ("what is it?", label, 7)
    assert task.reward(right, item) == 1.0
    for wrong in ("", "no idea", r"\boxed{}"):
        assert task.reward(wrong, item) == 0.0
    (told, asked) = (message["content"] for message in messages_for(task, item, ()))
    assert told == item.context
    assert "what is it?" in asked
    assert task.max_steps == 1


def archive_of(path: Path, name: str, *, member: str) -> None:
    database = path.with_suffix(".sqlite")
    with sqlite3.connect(database) as connection:
        connection.executescript("CREATE TABLE singer (name TEXT, age INTEGER); INSERT INTO singer VALUES ('Ann', 31);")
    connection.close()
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(member)
        raw = database.read_bytes()
        info.size = len(raw)
        archive.addfile(info, io.BytesIO(raw))
    database.unlink()


@pytest.mark.parametrize("name", ["spider", "bird"])
def test_a_question_about_a_database(name, tmp_path):
    file, archive = CATALOGUE[name].files
    write(tmp_path / file, {"task": "Who sings?", "label": "SELECT name FROM singer", "db_id": "concert"})
    archive_of(tmp_path / archive, "concert", member="concert/concert.sqlite")
    task = task_named(name)
    assert isinstance(task, SQLTask)
    (item,) = task.items(tmp_path)
    assert item.query == "Who sings?"
    (told, asked) = (message["content"] for message in messages_for(task, item, ()))
    assert "CREATE TABLE singer" in told
    assert "Who sings?" in asked
    assert task.reward("```sql\nSELECT max(name) FROM singer\n```", item) == 1.0
    assert task.reward("```sql\nDELETE FROM singer\n```", item) == 0.0
    task.close()


def test_an_archive_writes_nowhere_but_into_its_folder(tmp_path):
    write(tmp_path / "q.jsonl", {"task": "Who?", "label": "SELECT 1", "db_id": "evil"})
    archive_of(tmp_path / "dbs.tar.gz", "evil", member="../../../evil.sqlite")
    task = SQLTask(name="x", file="q.jsonl", databases="dbs.tar.gz", instruction="")
    assert len(task.items(tmp_path)) == 1
    assert not (tmp_path.parent / "evil.sqlite").exists()
    write(tmp_path / "q.jsonl", {"task": "Who?", "label": "SELECT 1", "db_id": "nobody"})
    with pytest.raises(InvalidInput, match="does not contain"):
        task.items(tmp_path)
    (tmp_path / "dbs.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InvalidInput, match="cannot read"):
        task.items(tmp_path)
    task.close()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"label": "a"}', 'line 2 needs "task"'),
        ('{"task": " ", "label": "a"}', 'line 2 needs "task"'),
        ('{"task": "x"}', 'line 2 needs "task"'),
    ],
)
def test_a_line_that_is_no_task_is_named(line, said, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(f'{{"task": "fine", "label": "a"}}\n{line}\n')
    with pytest.raises(InvalidInput, match=said):
        read_items(path)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", "empty", "binary"):
        with pytest.raises(InvalidInput, match=name):
            read_items(tmp_path / f"{name}.jsonl")


def test_a_stream_of_ones_own(tmp_path):
    write(tmp_path / "sums.jsonl", *({"task": f"{n} + 1", "label": n + 1} for n in range(3)))
    task = FileTask(name="sums", file="sums.jsonl", judge=lambda reply, label: float(reply.strip() == str(label)))
    items = task.items(tmp_path)
    assert [task.reward("2", item) for item in items] == [0.0, 1.0, 0.0]
    assert Item("x", {"b": 1, "a": "é"}).solution == '{"a": "é", "b": 1}'


def test_what_is_played_in_an_environment_is_not_asked():
    for name in ("alfworld", "nothing"):
        with pytest.raises(InvalidInput, match=f"no task {name!r}"):
            task_named(name)
    assert len([entry for entry in CATALOGUE.values() if entry.paper_name]) == 16
