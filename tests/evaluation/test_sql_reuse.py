"""Reusing queries: what a query speaks of is read, names and values are replaced, and what comes out really runs."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.sql_stage import sql_stage
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.reuse.sql_agent import SQLAgent
from cascade_memory.evaluation.reuse.sql_queries import (
    Asked,
    Schema,
    joins,
    names_in,
    numbers_in,
    read_schema,
    read_sql,
    renamed,
    revalued,
)
from cascade_memory.evaluation.tasks.sql_task import SQLTask

SINGERS = """CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT, country TEXT);
CREATE TABLE song (song_id INTEGER PRIMARY KEY, title TEXT, singer_id INT, FOREIGN KEY (singer_id) REFERENCES singer (id));
INSERT INTO singer VALUES (1, 'Ann', 31, 'France'), (2, 'Bo', 29, 'New Zealand'), (3, 'Cy', 45, 'France');
INSERT INTO song VALUES (1, 'Rain', 1), (2, 'Sun', 1), (3, 'Snow', 3);"""
SHOPS = """CREATE TABLE "shop" ("shop_id" INTEGER PRIMARY KEY, "name" TEXT, "profit" REAL, "city" TEXT);
CREATE TABLE "worker" ("worker_id" INTEGER PRIMARY KEY, "name" TEXT, "shop_id" INT REFERENCES "shop");
INSERT INTO shop VALUES (1, 'Alpha', 10, 'Rome'), (2, 'Beta', 30, 'Oslo');
INSERT INTO worker VALUES (1, 'Dee', 1), (2, 'Eve', 2), (3, 'Flo', 2);"""
ASKED = [
    ("singers", "What are the names of the singers from France?", "SELECT name FROM singer WHERE country = 'France'"),
    ("singers", "What are the names of the singers from New Zealand?", "SELECT name FROM singer WHERE country = 'New Zealand'"),
    ("singers", "How many singers are older than 30?", "SELECT count(*) FROM singer WHERE age > 30"),
    ("singers", "How many singers are older than nine?", "SELECT count(*) FROM singer WHERE age > 9"),
    ("singers", "How many songs are there?", "SELECT count(*) FROM song"),
    ("shops", "How many workers are there?", "SELECT count(*) FROM worker"),
    ("shops", "What is the average profit of all shops?", "SELECT avg(profit) FROM shop"),
    ("singers", "What is the average age of all singers?", "SELECT avg(age) FROM singer"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sql")
    with tarfile.open(target / "dbs.tar.gz", "w:gz") as packed:
        for name, script in {"singers": SINGERS, "shops": SHOPS}.items():
            connection = sqlite3.connect(target / f"{name}.sqlite")
            connection.executescript(script)
            connection.close()
            packed.add(target / f"{name}.sqlite", f"dbs/{name}/{name}.sqlite")
    lines = [json.dumps({"task": question, "label": sql, "db_id": name}) for name, question, sql in ASKED]
    (target / "asked.jsonl").write_text("\n".join(lines))
    return target


@pytest.fixture(scope="module")
def singers(folder: Path) -> Schema:
    return read_schema(folder / "singers.sqlite")


@pytest.fixture(scope="module")
def shops(folder: Path) -> Schema:
    return read_schema(folder / "shops.sqlite")


@pytest.fixture
def agents(folder: Path) -> Iterator[dict[str, SQLAgent]]:
    task = SQLTask(name="asked", file="asked.jsonl", databases="dbs.tar.gz", instruction="")
    items = task.items(folder)
    agents = {name: SQLAgent(task, items, alone=[False] * 7 + [True], strength=name) for name in ("full", "map")}
    yield agents
    for agent in agents.values():
        agent.close()
    task.close()


def case(number: int) -> RecalledCase:
    name, question, sql = ASKED[number]
    nothing = {"similarity": 0.0, "utility": 0.0, "uncertainty": 0.0, "score": 0.0}
    return RecalledCase(id="1", query=f"Database {name}: {question}", solution=sql, metadata={}, **nothing)


def test_a_schema_is_read_with_its_references(singers, shops):
    assert singers.tables["singer"]["age"].numeric
    assert singers.tables["singer"]["id"].key
    assert not singers.tables["singer"]["name"].numeric
    assert singers.link("singer", "song") == ("id", "singer_id")
    assert shops.link("worker", "shop") == ("shop_id", "shop_id")  # a reference that names no column means the key
    assert shops.link("shop", "shop") is None


def test_names_in_a_query_are_told_apart(singers):
    joined = "FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer_id"
    sql = f"SELECT T1.name, count(*) AS age {joined} WHERE T2.title = 'age' LIMIT 3"
    tokens = read_sql(sql, singers)
    assert [(one.table, one.column) for one in tokens if one.role == "column"] == [
        ("singer", "name"),
        ("singer", "id"),
        ("song", "singer_id"),
        ("song", "title"),
    ]
    assert [one.text for one in tokens if one.role in ("text", "number")] == ["'age'", "3"]
    ((left, right),) = joins(tokens)
    assert (tokens[left].column, tokens[right].column) == ("id", "singer_id")


def test_both_halves_of_a_union_have_names_of_their_own(singers):
    sql = "SELECT T1.name FROM singer AS T1 UNION SELECT T1.title FROM song AS T1"
    columns = [(one.table, one.column) for one in read_sql(sql, singers) if one.role == "column"]
    assert columns == [("singer", "name"), ("song", "title")]


@pytest.mark.parametrize(
    ("literal", "old", "new", "expected"),
    [
        ("= 'France'", "from France", "from New Zealand, where Ann lives", "'New Zealand'"),  # a value of the column
        ("= 'France'", "from France", "from Atlantis", "'Atlantis'"),  # else a name
        ("= 'France'", "from French places", "from Atlantis", "'France'"),  # the old question did not name it
        ("= 'France'", "from France", "singers of France called Ann", "'France'"),  # still named
        ("LIKE '%Fra%'", "has Fra in it", "has 'land' in it", "'%land%'"),
        ("= 'France'", "from France", "from O'Neill", "'O''Neill'"),
    ],
)
def test_texts_are_replaced(literal, old, new, expected, singers):
    tokens = read_sql(f"SELECT name FROM singer WHERE country {literal}", singers)
    values = {("singer", "country"): ("France", "New Zealand")}
    new = new.replace("O'Neill", '"O\'Neill"')
    assert revalued(tokens, old, new, lambda *column: values[column])[-1].text == expected


def test_numbers_are_replaced_in_their_order_and_only_those_that_were_asked_for(singers):
    tokens = read_sql("SELECT name FROM singer WHERE age BETWEEN 20 AND 30 LIMIT 1", singers)
    written = revalued(tokens, "between 20 and 30", "between 25 and three and 1", lambda *_: ())
    assert [one.text for one in written if one.role == "number"] == ["25", "3", "1"]
    assert numbers_in("top 3 of 4.5, or two") == ["3", "4.5", "2"]
    assert names_in("Which song by Bo Diddley is called 'Who'?") == ["Who", "Bo Diddley"]


def test_joins_follow_the_references_of_the_other_database(singers, shops):
    sql = "SELECT T1.name, count(*) FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer_id GROUP BY T1.id"
    old = Asked("What is the name of each singer and how many songs are there?", singers)
    new = Asked("What is the name of each shop and how many workers are there?", shops)
    tokens = renamed(read_sql(sql, singers), old, new)
    assert tokens is not None
    assert " ".join(one.text for one in tokens).replace(" . ", ".") == (
        "SELECT T1.`name` , count ( * ) FROM `shop` AS T1 JOIN `worker` AS T2 "
        "ON T1.`shop_id` = T2.`shop_id` GROUP BY T1.`shop_id`"
    )


def test_too_few_tables_are_no_place_for_a_join(singers):
    tokens = read_sql("SELECT 1 FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer_id", singers)
    one_table = Schema({"shop": {}})
    assert renamed(tokens, Asked("", singers), Asked("", one_table)) is None


@pytest.mark.parametrize(
    ("place", "shown", "full", "values_alone"),
    [
        (0, 1, True, True),  # another country
        (2, 3, True, True),  # another number, in words
        (3, 2, True, True),
        (4, 5, True, False),  # another database
        (5, 4, True, False),
        (6, 7, True, False),
        (0, 4, False, False),  # a query that asks for something else
    ],
)
def test_a_recalled_query_is_adapted_and_run(place, shown, full, values_alone, agents):
    assert agents["full"].attempt(place, [case(shown)]).success is full
    assert agents["map"].attempt(place, [case(shown)]).success is values_alone


def test_alone_without_a_case_and_with_a_useless_one(agents):
    alone = agents["full"].attempt(7, [case(0)])
    assert (alone.success, alone.answer) == (True, ASKED[7][2])
    assert agents["full"].attempt(0, []).answer is None
    strange = RecalledCase(
        id="1", query="no such form", solution="DROP TABLE singer", metadata={}, similarity=0, utility=0, uncertainty=0, score=0
    )
    assert not agents["full"].attempt(0, [strange]).success


@pytest.mark.slow
def test_a_stage_of_real_questions(data):
    folders = Folders(data, Path("unused"))
    stage = sql_stage(Run("spider", "similarity", 0, 60, "reuse"), folders)
    try:
        assert len(stage.queries) == 60
        assert all(query.startswith("Database ") for query in stage.queries)
        place = stage.alone.index(False)
        own = RecalledCase(
            id="1",
            query=stage.queries[place],
            solution=stage.solver.items[place].solution,
            metadata={},
            similarity=1,
            utility=1,
            uncertainty=0,
            score=1,
        )
        assert stage.solver.attempt(place, [own]).success  # its own solution survives being adapted to itself
        assert stage.declared == {"alone": 0.2, "agent": "full"}
    finally:
        stage.close()


@pytest.mark.long
def test_questions_that_are_set_aside_are_never_compared(data):
    folders = Folders(data, Path("unused"))
    stages = [sql_stage(Run("spider", "similarity", 0, None, solver), folders) for solver in ("reuse", "reuse-aside")]
    try:
        compared, aside = (set(stage.queries) for stage in stages)
        assert (len(aside), len(compared)) == (60, 912)
        assert not compared & aside
    finally:
        for stage in stages:
            stage.close()
