"""What worked on a clearly more similar task counts more than a failure."""

from __future__ import annotations

from typing import Any

import pytest
from warned import CALL, TASK, about_to, fail

from cascade_memory import CascadeMemory, Step, WarningOptions

FARMS = "how many farms are there in the north"
WORKED = Step(tool="sql", arguments={"q": "SELECT nme FROM farms"}, observation="3 rows")


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline") as made:
        yield made


def test_no_agent_is_warned_of_what_has_worked_on_a_more_similar_task(memory: CascadeMemory):
    fail(memory)
    memory.recall(FARMS).reward(1.0, solution=[WORKED], source="env")
    assert about_to(memory, FARMS) is None
    assert about_to(memory, TASK) is not None


def test_what_worked_on_another_task_says_nothing_where_the_failure_is_nearer(memory: CascadeMemory):
    memory.recall(FARMS).reward(1.0, solution=[WORKED], source="env")
    fail(memory)
    assert about_to(memory, TASK) is not None


def test_what_a_person_did_not_allow_is_said_wherever_it_has_worked(memory: CascadeMemory):
    refused = Step(tool="sql", arguments=CALL["arguments"], observation="User rejected the tool call for `sql`", failed=True)
    fail(memory, TASK, refused)
    memory.recall(FARMS).reward(1.0, solution=[Step(tool="sql", arguments=CALL["arguments"], observation="ok")], source="env")
    assert about_to(memory, FARMS) is not None


def call_in(database: str) -> dict[str, Any]:
    return {"tool": "sql", "arguments": {"database": database, "q": "SELECT nme FROM t"}}


def in_two_places(memory: CascadeMemory) -> None:
    """Let the same query fail in a shop and work on a farm."""
    fail(memory, TASK, Step(**call_in("shop"), observation="no such column: nme", failed=True))
    memory.recall(FARMS).reward(1.0, solution=[Step(**call_in("farm"), observation="3 rows")], source="env")


def test_what_worked_in_the_same_place_counts_more_than_a_failure_elsewhere(memory: CascadeMemory):
    in_two_places(memory)
    assert about_to(memory, TASK, **call_in("farm")) is None


def test_what_failed_in_the_same_place_counts_more_than_a_success_elsewhere(memory: CascadeMemory):
    in_two_places(memory)
    assert about_to(memory, FARMS, **call_in("shop")) is not None


def test_where_nothing_is_known_of_the_place_the_more_similar_task_counts(memory: CascadeMemory):
    in_two_places(memory)
    assert about_to(memory, FARMS, **call_in("port")) is None
    assert about_to(memory, TASK, **call_in("port")) is not None


def test_where_calls_name_places_that_come_again_a_success_elsewhere_says_nothing_about_a_new_one(memory: CascadeMemory):
    in_two_places(memory)
    again = Step(tool="sql", arguments={"database": "farm", "q": "SELECT size FROM t"}, observation="3 rows")
    memory.recall(f"{FARMS} and how large are they").reward(1.0, solution=[again], source="env")
    assert about_to(memory, FARMS, **call_in("port")) is not None
    assert about_to(memory, FARMS, **call_in("farm")) is None


def test_a_place_with_the_name_of_a_mistake_is_no_mistake(memory: CascadeMemory):
    fail(memory, TASK, Step(**call_in("shop"), observation="no such column: nme", failed=True))
    named_so = {"database": "nme", "q": "SELECT size FROM t"}
    assert about_to(memory, TASK, tool="sql", arguments=named_so) is None
    assert about_to(memory, TASK, **call_in("shop")) is not None


def saying(**others: Any) -> dict[str, Any]:
    """The call of the mistake, with other arguments."""
    return {"tool": "sql", "arguments": {**others, "q": "SELECT nme FROM t"}}


@pytest.mark.parametrize(
    "empty", [{"database": None}, {"database": ""}, {"database": " "}, {"options": {}}, {"options": {"a": [None, {}]}}]
)
def test_optional_arguments_without_a_value_are_no_place(memory: CascadeMemory, empty: dict[str, Any]):
    fail(memory, TASK, Step(**saying(**empty), observation="no such column: nme", failed=True))
    memory.recall(FARMS).reward(1.0, solution=[Step(**call_in("farm"), observation="3 rows")], source="env")
    assert about_to(memory, FARMS, **saying(**empty)) is None, "what worked is nearer"
    assert about_to(memory, TASK, **saying(**empty)) is not None
    assert about_to(memory, FARMS, **saying(**{**empty, "database": "farm"})) is None


@pytest.mark.parametrize("key", ["password=Tr0ub4dor", "ghp_" + "a1B2" * 9, "Authorization: Bearer " + "a1B2" * 9])
def test_a_secret_is_no_place(memory: CascadeMemory, key: str):
    fail(memory, TASK, Step(**saying(key=key), observation="no such column: nme", failed=True))
    (warning,) = memory.warnings.all()
    assert "[secret:" in warning.action
    memory.recall(FARMS).reward(1.0, solution=[Step(**call_in("farm"), observation="3 rows")], source="env")
    assert about_to(memory, FARMS, **saying(key=key)) is None, "what worked is nearer"


def test_calls_that_name_no_place_name_none_that_comes_again(memory: CascadeMemory):
    in_two_places(memory)
    for number in range(2):
        nowhere = Step(tool="sql", arguments={"database": None, "q": "SELECT size FROM t"}, observation="3 rows")
        memory.recall(f"{FARMS} and how large are {number} of them").reward(1.0, solution=[nowhere], source="env")
    assert about_to(memory, FARMS, **call_in("port")) is None


def test_a_lock_holds_where_the_failure_counts_and_nowhere_else():
    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(lock=True)) as memory:
        in_two_places(memory)
        advice = about_to(memory, TASK, **call_in("shop"))
        assert advice is not None
        assert memory.warnings.check(advice.episode_id, **call_in("farm")) is None
        assert (
            memory.warnings.check(advice.episode_id, tool="sql", arguments={"database": "nme", "q": "SELECT size FROM t"})
            is None
        )
        again = memory.warnings.check(advice.episode_id, **call_in("shop"))
        assert again is not None
        assert again.locked


def test_whoever_was_warned_in_one_place_is_warned_of_another_mistake_elsewhere(memory: CascadeMemory):
    in_two_places(memory)
    other: dict[str, Any] = {"tool": "sql", "arguments": {"database": "farm", "q": "SELECT nme, agee FROM t"}}
    fail(memory, TASK, Step(**other, observation="no such column: agee", failed=True))
    said: list[str] = []
    for _ in range(20):
        advice = about_to(memory, TASK, **call_in("shop"))
        assert advice is not None
        elsewhere = memory.warnings.check(advice.episode_id, **other)
        said += [] if elsewhere is None else [elsewhere.warning.happened]
    assert {*said} == {"no such column: agee"}
