"""Questions about tables of their own: judged by what the queries return, and read from a file that nobody trusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.model.model_solver import messages_for
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.tables_task import TablesTask

TABLE: dict[str, Any] = {
    "name": "staff",
    "column_info_list": [{"name": "name", "type": "TEXT"}, {"name": "pay", "type": "INT"}],
    "row_list": [["Ann", 30], ["Bo", 20], ["O'Neil", 10]],
}


def entry(question: str, query: str, table: Any = TABLE) -> dict[str, Any]:
    return {"instruction": question, "answer_info": {"sql": query}, "table_info": table}


ENTRIES = {
    "0": entry("Who is paid most?", "SELECT name FROM staff ORDER BY pay DESC LIMIT 1"),
    "1": entry("Raise the pay of all.", "UPDATE staff SET pay = pay + 1"),
    "2": entry("What is O'Neil paid?", "SELECT pay FROM staff WHERE name = 'O\\'Neil'"),
    "3": entry("How much does it vary?", "SELECT STDDEV(pay) FROM staff"),
}


def task(folder: Path, entries: Any = ENTRIES) -> TablesTask:
    (folder / "tables.json").write_text(entries if isinstance(entries, str) else json.dumps(entries))
    return TablesTask(name="tables", file="tables.json")


def test_a_question_is_judged_by_what_its_query_returns(tmp_path: Path):
    played = task(tmp_path)
    first, _, second, third = played.items(tmp_path)
    assert (first.query, second.query) == ("Who is paid most?", "What is O'Neil paid?")
    assert played.reward("```sql\nSELECT 'Ann'\n```", first) == 1.0
    assert played.reward("```sql\nSELECT name FROM staff WHERE pay = 20\n```", first) == 0.0
    assert played.reward("```sql\nDROP TABLE staff\n```", first) == 0.0
    assert played.reward("```sql\nSELECT 10\n```", second) == 1.0
    assert played.reward("```sql\nSELECT 8.165\n```", third) == 1.0  # two decimals count
    assert played.reward("```sql\nSELECT 8.2\n```", third) == 0.0
    played.close()


def test_a_change_is_judged_by_the_table_afterwards(tmp_path: Path):
    played = task(tmp_path)
    raise_all = played.items(tmp_path)[1]
    assert played.compare("UPDATE staff SET pay = 1 + pay", raise_all) == 1.0
    assert played.compare("UPDATE staff SET pay = pay + 2", raise_all) == 0.0
    assert played.compare("SELECT 1", raise_all) == 0.0
    assert played.compare("UPDATE staff SET pay = pay + 1 WHERE 0", raise_all) == 0.0
    assert played.compare("UPDATE staff SET pay = 1 + pay", raise_all) == 1.0  # the table itself was never changed
    played.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE staff",
        "CREATE TABLE other (a)",
        "DELETE FROM sqlite_master",
        "ATTACH 'other.sqlite' AS other",
        "VACUUM INTO 'other.sqlite'",
        "PRAGMA writable_schema = 1",
        "INSERT INTO staff VALUES ('Cy', load_extension('x'))",
        "UPDATE staff SET pay = pay + 1; UPDATE staff SET pay = pay + 1",
    ],
)
def test_a_change_touches_the_rows_of_its_table_and_nothing_else(tmp_path: Path, sql: str):
    played = task(tmp_path)
    assert played.compare(sql, played.items(tmp_path)[1]) == 0.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables.json"]
    played.close()


def test_recorded_rows_are_the_truth_in_any_order(tmp_path: Path):
    question = entry("Who and how much?", "SELECT name, pay FROM staff")
    question["answer_info"]["direct"] = [["Bo", "20.00"], ["Ann", 30], ["O'Neil", 10]]
    played = task(tmp_path, {"0": question})
    (item,) = played.items(tmp_path)
    assert played.compare("SELECT name, pay FROM staff", item) == 1.0
    assert played.compare("SELECT pay, name FROM staff", item) == 0.0
    assert played.compare("SELECT name, pay FROM staff LIMIT 2", item) == 0.0
    played.close()


def test_a_model_sees_the_schema_and_two_rows(tmp_path: Path):
    played = task(tmp_path)
    told = messages_for(played, played.items(tmp_path)[0], ())
    assert 'CREATE TABLE "staff"' in told[0]["content"]
    assert '["Ann", 30]\n["Bo", 20]' in told[0]["content"]
    assert "Neil" not in told[0]["content"]
    assert told[1]["content"].startswith("Question:\nWho is paid most?")
    played.close()


@pytest.mark.parametrize(
    "entries",
    [
        "no JSON",
        "[]",
        "3",
        '{"0": 1}',
        '{"x": {}}',
        {"zero": ENTRIES["0"]},
        {"0": entry("a", 3)},  # type: ignore[arg-type]
        {"0": entry("a", "SELECT 1", {**TABLE, "row_list": [["Ann"]]})},
        {"0": entry("a", "SELECT 1", {**TABLE, "row_list": [[{"a": 1}, 2]]})},
        {"0": entry("a", "SELECT 1", {**TABLE, "column_info_list": [{"name": "a", "type": "INT); DROP TABLE x; --"}]})},
        {"0": entry("a", "SELECT 1", {**TABLE, "column_info_list": []})},
        {"../../outside": ENTRIES["0"]},
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, entries: Any):
    played = task(tmp_path, entries)
    with pytest.raises(InvalidInput, match="holds something other than questions about tables"):
        played.items(tmp_path)
    played.close()


def test_names_cannot_leave_their_quotes(tmp_path: Path):
    table = {
        **TABLE,
        "name": 'staff"; DROP TABLE "x',
        "column_info_list": [{"name": 'a"b', "type": "TEXT"}, {"name": "c", "type": ""}],
    }
    table["column_info_list"][1]["type"] = "INT"
    played = task(tmp_path, {"0": entry("a", "SELECT count(*) FROM sqlite_master", table)})
    (item,) = played.items(tmp_path)
    assert played.reward("```sql\nSELECT 1\n```", item) == 1.0
    played.close()


# SQLite cannot run these right queries (changes with a join), or orders groups differently where a limit takes some of them.
BEYOND_SQLITE = [
    "table-6",
    "table-81",
    "table-213",
    "table-270",
    "table-295",
    "table-302",
    "table-392",
    "table-400",
    "table-449",
]


@pytest.mark.slow
def test_who_knows_the_right_queries_solves_all_published_tasks_but_nine_and_who_knows_nothing_solves_none(data: Path):
    played = CATALOGUE["llb-db"].make
    assert played is not None
    tables = played(CATALOGUE["llb-db"])
    assert isinstance(tables, TablesTask)
    items = tables.items(data)
    assert len(items) == 500
    unsolved = [item.fields["db_id"] for item in items if tables.compare(str(item.label), item) != 1.0]
    assert unsolved == BEYOND_SQLITE
    assert not any(tables.compare(sql, item) for item in items for sql in ("", "SELECT 1"))
    tables.close()
