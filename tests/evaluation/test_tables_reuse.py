"""The agent that keeps the form of a query and fills in other contents; its examples are not those of the published tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cascade_memory import RecalledCase
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.play import play
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.bench.stages import stage_for
from cascade_memory.evaluation.reuse.tables_agent import TablesAgent
from cascade_memory.evaluation.reuse.tables_words import conditions, mentions
from cascade_memory.evaluation.tasks.tables_task import TablesTask

BOATS: dict[str, Any] = {
    "name": "boats",
    "column_info_list": [
        {"name": "boat_id", "type": "INT"},
        {"name": "harbour", "type": "TEXT"},
        {"name": "length", "type": "INT"},
        {"name": "status", "type": "TEXT"},
    ],
    "row_list": [[1, "Oslo", 9, "Active"], [2, "Oslo", 30, "Active"], [3, "Riga", 12, "sold"], [4, "Riga", 20, "Active"]],
}
TREES: dict[str, Any] = {
    "name": "trees",
    "column_info_list": [
        {"name": "tree_id", "type": "INT"},
        {"name": "park", "type": "TEXT"},
        {"name": "height", "type": "INT"},
        {"name": "planted", "type": "TEXT"},
    ],
    "row_list": [
        [1, "North", 8, "2020-01-01"],
        [2, "North", 4, "2021-05-01"],
        [3, "South", 9, "2022-01-01"],
        [4, "South", 7, "2023-01-01"],
    ],
}
# A question about boats with its query, and a question about trees with its query.
PAIRS = [
    (
        "Which boats have a length of more than 10? Return the boat ID and harbour.",
        "SELECT boat_id, harbour FROM boats WHERE length > 10",
        "Which trees have a height of at least 8? Return the tree ID, park, and height.",
        "SELECT tree_id, park, height FROM trees WHERE height >= 8",
    ),
    (
        "What are the harbours and their average length? Return the harbour and average length, ordered by harbour descending.",
        "SELECT b.harbour, AVG(b.length) AS mean FROM boats AS b GROUP BY b.harbour ORDER BY b.harbour DESC",
        "What are the parks and their maximum height? Return the park and maximum height, ordered by park ascending.",
        "SELECT park, MAX(height) FROM trees GROUP BY park ORDER BY park ASC",
    ),
    (
        "Which harbours have a total length greater than 35? Return the harbour and total length.",
        "SELECT harbour, SUM(length) AS total FROM boats GROUP BY harbour HAVING SUM(length) > 35",
        "Which parks have an average height below 7? Return the park and average height.",
        "SELECT park, AVG(height) FROM trees GROUP BY park HAVING AVG(height) < 7",
    ),
    (
        "Return the boat ID, ordered by length in descending order, skipping the first 2 entries and limited to 1 entry.",
        "SELECT boat_id FROM boats ORDER BY length DESC LIMIT 1 OFFSET 2",
        "Return the tree ID, ordered by height in ascending order, skipping the first 1 entries and limited to 2 entries.",
        "SELECT tree_id FROM trees ORDER BY height ASC LIMIT 2 OFFSET 1",
    ),
    (
        "Delete all entries where the status is 'sold'.",
        "DELETE FROM boats WHERE status = 'sold'",
        "Delete all entries where the tree was planted before January 1, 2022.",
        "DELETE FROM trees WHERE planted < '2022-01-01'",
    ),
    (
        "Update the status to 'sold' for boats with a length above 20.",
        "UPDATE boats SET status = 'sold' WHERE length > 20",
        "Update the park to 'East' for trees with a height below 5.",
        "UPDATE trees SET park = 'East' WHERE height < 5",
    ),
    (
        "Insert a new boat with boat ID 5, harbour 'Kiel', and length 7.",
        "INSERT INTO boats (boat_id, harbour, length) VALUES (5, 'Kiel', 7)",
        "Insert a new tree with tree ID 9 and park 'West'.",
        "INSERT INTO trees (tree_id, park) VALUES (9, 'West')",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    entries = [entry for pair in PAIRS for entry in (_entry(pair[0], pair[1], BOATS), _entry(pair[2], pair[3], TREES))]
    (tmp_path / "llb_db.json").write_text(json.dumps(dict(enumerate(entries))))
    return tmp_path


def _entry(question: str, query: str, table: Any) -> dict[str, Any]:
    return {"instruction": question, "answer_info": {"sql": query}, "table_info": table}


@pytest.fixture
def agent(folder: Path) -> Iterator[TablesAgent]:
    task = TablesTask(name="tables", file="llb_db.json")
    items = task.items(folder)
    yield TablesAgent(task, items, alone=[False] * len(items))
    task.close()


def case(question: str, query: str) -> RecalledCase:
    rated = {"similarity": 1.0, "utility": 1.0, "uncertainty": 0.0, "score": 1.0}
    return RecalledCase(id="1", query=question, solution=query, metadata={}, **rated)


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_a_query_of_the_same_form_is_filled_with_other_contents_in_both_directions(agent: TablesAgent, number: int):
    boats, boats_query, trees, trees_query = PAIRS[number]
    assert agent.attempt(2 * number + 1, [case(boats, boats_query)]).success
    assert agent.attempt(2 * number, [case(trees, trees_query)]).success


def test_a_query_of_another_form_does_not_help_even_on_the_same_table(agent: TablesAgent):
    solved = [
        (asked, shown)
        for asked in range(len(PAIRS))
        for shown in range(len(PAIRS))
        if asked != shown and agent.attempt(2 * asked, [case(PAIRS[shown][0], PAIRS[shown][1])]).success
    ]
    assert solved == []


def test_without_a_case_nothing_is_solved_and_a_question_that_nobody_asked_leaves_its_query_as_it_is(agent: TablesAgent):
    assert not agent.attempt(0, []).success
    assert agent.attempt(0, [case("What was that?", "SELECT 1")]).answer == "SELECT 1"


def test_what_a_question_mentions():
    found = mentions("Return the status of the first 3 entries with more than 1,000 or the 'Big one' kind.", ["status", "kind"])
    assert [(one.kind, one.what) for one in found] == [
        ("column", "status"),
        ("limit", "3"),
        ("compared", ">"),
        ("value", "1000"),
        ("value", "'Big one'"),
        ("column", "kind"),
    ]


def test_a_percentage_is_a_factor_and_a_text_of_the_table_has_its_column():
    raised, lowered = (
        mentions(f"{verb} the pay by 10% in Berlin.", ["pay"], {"town": ["Berlin"]}) for verb in ("Raise", "Reduce")
    )
    assert [(one.value, one.column) for one in conditions(raised)] == [("1.1", "pay"), ("'Berlin'", "town")]
    assert conditions(lowered)[0].value == "0.9"


def test_the_stream_is_played_twice_with_equal_results(folder: Path, tmp_path: Path):
    rows = [play(Run("llb-db", "similarity", 0, solver="reuse"), Folders(folder, tmp_path)) for _ in range(2)]
    assert rows[0]["success"] == rows[1]["success"]
    assert rows[0]["n"] == 2 * len(PAIRS)


def test_the_stage_says_what_its_agent_is(folder: Path, tmp_path: Path):
    stage = stage_for(Run("llb-db", "CASCADE", 0, solver="reuse"), Folders(folder, tmp_path))
    assert (stage.declared, len(stage.queries)) == ({"alone": 0.2, "agent": "form"}, 2 * len(PAIRS))
    assert set(stage.kinds or ()) == {"select", "insert", "update", "delete"}
    stage.close()
