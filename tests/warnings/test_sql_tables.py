"""The same word names a table in one query and a column in another: the mistake lies in one of them only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cascade_memory import CascadeMemory, Step
from cascade_memory.capabilities.warnings.action_words import tables_in, words_before
from cascade_memory.capabilities.warnings.blame import blamed_step
from cascade_memory.capabilities.warnings.places import Call, Mistake, stands
from cascade_memory.domain.trajectory import Trajectory


def _mistake(action: str, happened: str) -> Mistake:
    found = blamed_step("count", Trajectory([Step(action=action, observation=happened, failed=True)]))
    assert found is not None
    return Mistake(found)


def _query(sql: str, *, database: str = "shows", happened: str = "", failed: bool = False) -> Step:
    return Step(tool="sql", arguments={"database": database, "query": sql}, observation=happened, failed=failed)


NO_TABLE = _query("SELECT name FROM country ORDER BY size", happened="no such table: country", failed=True)


@pytest.mark.parametrize(
    ("sql", "repeats"),
    [
        ("SELECT size FROM country", True),
        ('SELECT size FROM "country"', True),
        ("SELECT c.size FROM Country AS c", True),
        ("SELECT t.name FROM town AS t JOIN country AS c ON t.land = c.id", True),
        ("INSERT INTO country VALUES (1)", True),
        ("UPDATE country SET size = 1", True),
        ("DELETE\nFROM\n  country", True),
        ("SELECT a.id FROM town AS a, country AS b", True),
        ("SELECT id FROM main.country", True),
        ("SELECT id FROM channel GROUP BY country HAVING count(*) > 2", False),
        ("SELECT country FROM channel", False),
        ("SELECT name FROM channel WHERE title = 'Country Roads'", False),
        ("SELECT name FROM channel ORDER BY title, country", False),
        ("SELECT name FROM channel GROUP BY title, country", False),
        ("INSERT INTO channel (name, country) VALUES (1, 2)", False),
        ("SELECT name FROM channel WHERE title IN ('x', 'country')", False),
        ("SELECT (SELECT max(id) FROM town), country FROM channel", False),
        ("DROP TABLE IF EXISTS country", True),
    ],
)
def test_a_table_that_is_missing_says_nothing_of_a_column(sql: str, repeats: bool):
    found = blamed_step("list the names", Trajectory([NO_TABLE]))
    assert found is not None
    assert found.words == ("country",)
    assert Mistake(found).is_repeated(Call(_query(sql))) is repeats


def test_a_column_that_is_missing_is_missing_wherever_it_stands():
    mistake = _mistake("SELECT nme FROM staff", "no such column: nme")
    for sql in ("SELECT town, nme FROM staff", "SELECT town FROM staff ORDER BY nme", "SELECT t.nme FROM staff AS t"):
        assert mistake.is_repeated(Call(Step(action=sql)))


@pytest.mark.parametrize(
    ("action", "happened", "other"),
    [
        ("from pandas import DataFrame", "No module named 'pandas'", "import pandas"),
        ("take mug from shelf", "There is no shelf.", "go to shelf"),
        ("take mug from shelf", "There is no shelf.", "take cup from the shelf"),
        ("download notes from server", "unknown host: server", "upload notes to server"),
    ],
)
def test_other_words_say_where_as_well(action: str, happened: str, other: str):
    assert _mistake(action, happened).is_repeated(Call(Step(action=other)))


@pytest.fixture
def memory(always_warned: None) -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as made:
        made.reward(made.recall("which shows are there?").episode_id, 0.0, solution=[NO_TABLE], source="env")
        for one in made.warnings.all():
            made.warnings.restore(one.id)
        yield made


def _warned(memory: CascadeMemory, sql: str) -> bool:
    asked = {"database": "shows", "query": sql}
    return memory.warnings.check(memory.recall("which shows are there?").episode_id, tool="sql", arguments=asked) is not None


def test_an_agent_is_warned_of_the_table_only(memory: CascadeMemory):
    assert not _warned(memory, "SELECT id FROM channel GROUP BY country")
    assert _warned(memory, "SELECT id FROM country")


def test_that_a_column_of_this_name_has_worked_does_not_contradict_the_warning(memory: CascadeMemory):
    solved = memory.recall("which shows are there?").episode_id
    memory.reward(solved, 1.0, solution=[_query("SELECT country FROM channel", happened="2 rows")], source="env")
    assert _warned(memory, "SELECT id FROM country")
    assert not _warned(memory, "SELECT country FROM channel")


def test_a_column_that_one_table_lacks_is_not_missing_in_another_one_of_another_database(memory: CascadeMemory):
    no_age = _query("SELECT name, age FROM breeds", database="dogs", happened="no such column: age", failed=True)
    memory.reward(memory.recall("which shows are there?").episode_id, 0.0, solution=[no_age], source="env")
    for one in memory.warnings.all():
        memory.warnings.restore(one.id)
    assert not _warned(memory, "SELECT name FROM teacher ORDER BY age")
    assert _warned(memory, "SELECT b.age FROM shop JOIN breeds AS b ON shop.id = b.shop")

    def in_the_same(sql: str) -> object:
        asked = {"database": "dogs", "query": sql}
        return memory.warnings.check(memory.recall("which shows are there?").episode_id, tool="sql", arguments=asked)

    assert in_the_same("SELECT name FROM teacher ORDER BY age") is not None


@pytest.mark.parametrize(
    ("wrong", "happened", "other"),
    [
        ("SELECT EXTRACT(MONTH FROM created) FROM t", 'column "created" does not exist', "SELECT created FROM t"),
        ("SELECT country FROM country", "no such column: country", "SELECT country FROM shop"),
        ("SELECT country.name FROM country", "no such table: country", "SELECT country FROM shop"),
    ],
)
def test_a_word_that_is_also_a_column_or_said_to_be_one_is_no_table(wrong: str, happened: str, other: str):
    assert _mistake(wrong, happened).is_repeated(Call(Step(action=other)))


@pytest.mark.parametrize(
    ("happened", "counts"),
    [
        ("no such column: year", False),
        ("no such function: YEAR", True),
        ('near "year": syntax error', True),
    ],
)
def test_a_function_and_the_grammar_are_the_same_in_all_databases(happened: str, counts: bool):
    found = blamed_step(
        "count", Trajectory([_query("SELECT YEAR(d) FROM orders", database="shop", happened=happened, failed=True)])
    )
    assert found is not None
    assert stands(Mistake(found), 0.5, Call(_query("SELECT YEAR(sown) FROM crops", database="farm")), []) is counts


def test_the_placeholder_of_a_secret_is_no_table():
    assert "secret" not in tables_in(words_before(["SELECT 1 FROM [secret:token#1] AS t JOIN country"]))


def test_a_schema_is_no_table_and_its_table_is_one():
    mistake = _mistake("SELECT 1 FROM public.country", 'relation "public.country" does not exist')
    assert not mistake.is_repeated(Call(Step(action="SELECT country FROM public.singer")))
    assert mistake.is_repeated(Call(Step(action="SELECT name FROM public.country")))


def test_the_words_of_one_argument_do_not_follow_those_of_another():
    step = Step(tool="t", arguments={"mode": "copy from", "name": "alpha"}, observation="unknown: alpha", failed=True)
    found = blamed_step("copy", Trajectory([step]))
    assert found is not None
    assert Mistake(found).is_repeated(Call(Step(tool="t", arguments={"name": "alpha", "mode": "copy"})))


def test_without_a_database_the_table_may_be_another_one():
    mistake = _mistake("SELECT nme FROM staff", "no such column: nme")
    assert stands(mistake, 0.5, Call(Step(action="SELECT nme FROM customers")), [])
