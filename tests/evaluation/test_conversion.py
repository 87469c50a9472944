"""Each converter on rows that are invented here, in the layout of its source; the task then reads what was made."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converters import CONVERTERS, WITHOUT, convert
from cascade_memory.evaluation.search.questions import read_questions
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, task_named


def table(path: Path, *rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def as_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def banking77(source: Path) -> None:
    table(source / "banking_data/train.csv", ["text", "category"], ["\nIs my new card,\non its way?", "card_arrival"])
    table(source / "banking_data/test.csv", ["text", "category"], ["Where do I change my PIN?", "change_pin"])


def sentifin(source: Path) -> None:
    line = ["1", "Acme gains, O'Neil's Bank falls", "{'O'Neil's Bank': 'negative', 'Acme': 'positive'}", "5"]
    table(source / "SEntFiN.csv", ["S No.", "Title", "Decisions", "Words"], line)


def rca(source: Path) -> None:
    folder = source / "datasets/pre-train/network log"
    as_json(folder / "hw_switch_desc.json", [["FAN/3/FAN_GONE:The fan  [id] is gone.", "why"], ["no message", ""]])
    as_json(folder / "hw_routers_desc.json", [["FAN/3/FAN_GONE: The fan [id] is gone.", ""], ["BGP/4/DOWN: A peer left.", ""]])


def lfd(source: Path) -> None:
    head = ["LineId", "Label", "Timestamp", "Date", "Node", "Time", "NodeRepeat", "Type", "Component", "Level", "Content"]
    head += ["EventId", "EventTemplate"]
    first = ["1", "-", "0", "2005.01.01", "R1", "t", "R1", "RAS", "KERNEL", "INFO", "all is well", "E1", "all is <*>"]
    second = ["2", "APPREAD", "0", "2005.01.02", "R2", "t", "R2", "RAS", "APP", "FATAL", "cannot read, at all", "E2", "<*>"]
    table(source / "BGL/BGL_2k.log_structured.csv", head, first, second)


def ddxplus(source: Path) -> None:
    evidences: dict[str, Any] = {
        "E_1": {"question_en": "Do you cough?", "is_antecedent": False, "value_meaning": {}},
        "E_2": {"question_en": "Where does it hurt?", "is_antecedent": False, "value_meaning": {"V_1": {"en": "chest"}}},
        "E_3": {"question_en": "How much, from 0 to 10?", "is_antecedent": False, "value_meaning": {}},
        "E_4": {"question_en": "Do you smoke?", "is_antecedent": True, "value_meaning": {}},
    }
    as_json(source / "release_evidences.json", evidences)
    found = "['E_1', 'E_2_@_V_1', 'E_3_@_7', 'E_4']"
    head = ["AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE"]
    table(source / "release_validate_patients", head, ["31", "[]", "F", "Bronchitis", found, "E_1"])


def database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE singer (name TEXT); INSERT INTO singer VALUES ('Ann');")
    connection.close()


def spider(source: Path) -> None:
    database(source / "database/concert/concert.sqlite")
    asked = {"db_id": "concert", "question": "Who sings?", "query": "SELECT name FROM singer", "sql": {}}
    as_json(source / "dev.json", [asked])


def bird(source: Path) -> None:
    database(source / "dev_databases/concert/concert.sqlite")
    asked = {"db_id": "concert", "question": "Who sings?", "evidence": "all do", "SQL": "SELECT name FROM singer"}
    as_json(source / "dev.json", [asked])


def two_wiki(source: Path) -> None:
    context = [["Ada", ["Ada wrote.", " She lived in Ayr."]], ["Ayr", ["A town."]]]
    entry = {"_id": "x", "question": "Where did she live who wrote?", "answer": "Ayr", "context": context}
    as_json(source / "dev.json", [entry, {**entry, "question": "Is Ayr a town?", "answer": "yes"}])


SOURCES = {
    "banking77": banking77,
    "bird": bird,
    "ddxplus": ddxplus,
    "lfd": lfd,
    "rca": rca,
    "sentifin": sentifin,
    "spider": spider,
    "2wiki": two_wiki,
}
MADE = {
    "banking77": [("Is my new card, on its way?", "card arrival"), ("Where do I change my PIN?", "change pin")],
    "bird": [("Who sings?\nKnowledge: all do", "SELECT name FROM singer")],
    "ddxplus": [
        (
            "Sex: Female, Age: 31\nChief complaint: Do you cough? Yes\nSymptoms:\n- Do you cough? Yes\n"
            "- Where does it hurt? chest\n- How much, from 0 to 10? 7\nAntecedents:\n- Do you smoke? Yes",
            "Bronchitis",
        )
    ],
    "lfd": [
        ("2005.01.01 R1 RAS KERNEL INFO all is well", "normal"),
        ("2005.01.02 R2 RAS APP FATAL cannot read, at all", "APPREAD"),
    ],
    "rca": [("A peer left.", "BGP"), ("The fan [id] is gone.", "FAN")],
    "sentifin": [
        (
            "Acme gains, O'Neil's Bank falls",
            [{"entity": "Acme", "label": "positive"}, {"entity": "O'Neil's Bank", "label": "negative"}],
        )
    ],
    "spider": [("Who sings?", "SELECT name FROM singer")],
}


@pytest.mark.parametrize("name", list(MADE))
def test_a_task_reads_what_its_converter_makes(name: str, tmp_path: Path):
    SOURCES[name](tmp_path / "source")
    made = convert(name, tmp_path / "source", tmp_path / "data")
    assert [path.name for path in made] == list(CATALOGUE[name].files)
    task = task_named(name)
    try:
        read = [(item.query, item.label) for item in task.items(tmp_path / "data")]
    finally:
        getattr(task, "close", lambda: None)()
    assert sorted(read, key=str) == sorted(MADE[name], key=str)
    assert CATALOGUE[name].is_there(tmp_path / "data")


def test_questions_come_with_their_passages(tmp_path: Path):
    two_wiki(tmp_path / "source")
    convert("2wiki", tmp_path / "source", tmp_path / "data")
    asked = {item.query: item.label for item in read_questions(tmp_path / "data")}
    assert asked == {"Where did she live who wrote?": ["Ayr"], "Is Ayr a town?": ["yes"]}
    passages = [json.loads(line) for line in (tmp_path / "data/2wiki_corpus.jsonl").read_text().splitlines()]
    assert [(one["title"], one["text"]) for one in passages] == [("Ada", "Ada wrote. She lived in Ayr."), ("Ayr", "A town.")]


def test_every_task_of_the_catalogue_has_a_converter_or_says_why_not():
    assert set(SOURCES) == set(CONVERTERS)
    assert set(CONVERTERS) | set(WITHOUT) == set(CATALOGUE)
    assert not set(CONVERTERS) & set(WITHOUT)
    assert all(entry.source and entry.licence for entry in CATALOGUE.values())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    banking77(tmp_path / "source")
    command = ["bench", "convert", "banking77", str(tmp_path / "source"), "--out", str(tmp_path / "data")]
    assert main([*command, "--rows", "1", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["files"].values()) == [1]
    assert main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["bench", "convert", "mud", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "DTLBench's file is read as it is" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(SOURCES))
def test_what_is_not_the_source_is_refused_with_a_sentence(name: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match="holds no"):
        convert(name, tmp_path, tmp_path / "data")
    SOURCES[name](tmp_path / "source")
    for path in [one for one in (tmp_path / "source").rglob("*") if one.is_file() and one.suffix != ".sqlite"]:
        good = path.read_bytes()
        for bad in (b"", b"\xff\xfe\x00", b'{"a": 1}', b"[1, 2]", b"[" * 100_000, b"a,b\n1,2\n"):
            path.write_bytes(bad)
            with pytest.raises(InvalidInput):
                convert(name, tmp_path / "source", tmp_path / "data")
        path.write_bytes(good)
    assert not (tmp_path / "data").exists(), "nothing is written unless all could be read"


def test_a_database_that_is_missing_or_elsewhere_is_refused(tmp_path: Path):
    for name in ("concert", "../../concert"):
        as_json(tmp_path / "dev.json", [{"db_id": name, "question": "Who?", "query": "SELECT 1"}])
        with pytest.raises(InvalidInput, match="there is no database"):
            convert("spider", tmp_path, tmp_path / "data")
