"""What a stored call says of its arguments, whatever stands in it."""

from __future__ import annotations

import pytest

from cascade_memory.capabilities.warnings.blame import blamed_step
from cascade_memory.capabilities.warnings.places import Call, Mistake
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.domain.trajectory import Step, Trajectory

CALL = Call(Step(tool="sql", arguments={"db": "farm", "q": "SELECT nme FROM fields"}))


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * 100_000,
        '{"q": ' * 600 + '"nme"' + "}" * 600,
        '{"q": ' * 100_000,
        '{"q": "SELECT nme',
        '["nme"]',
        "null",
        "\x00",
        '{"q": NaN}',
        '{"nme": 1}',
    ],
)
def test_what_is_no_call_has_no_place_and_is_compared_by_its_words(arguments: str):
    blame = Blame(
        why="failed", tool="sql", action=f"sql({arguments})", happened="no such column: nme", group="g", words=("nme",)
    )
    mistake = Mistake(blame)
    assert mistake.is_repeated(CALL)
    assert mistake.place == {}
    assert mistake.place_in(CALL.step.arguments) == {}


def _mistake(action: str, happened: str) -> Mistake:
    found = blamed_step("tidy up", Trajectory([Step(action=action, observation=happened, failed=True)]))
    assert found is not None
    return Mistake(found)


def test_where_a_message_names_no_word_the_mistake_is_the_whole_action_and_not_a_longer_one():
    mistake = _mistake("move table to box 2", "No known action matches that input.")
    assert mistake.is_repeated(Call(Step(action="move table to box 7")))
    assert not mistake.is_repeated(Call(Step(action="move steel table to box 2")))
    assert not mistake.is_repeated(Call(Step(action="move table")))


def test_where_a_message_names_a_word_a_longer_action_with_that_word_is_the_mistake():
    mistake = _mistake("move table", "There is no table here.")
    assert mistake.is_repeated(Call(Step(action="move steel table to box 2")))


@pytest.mark.parametrize("happened", ["syntax error", "", "failed"])
def test_the_same_holds_for_calls_of_tools(happened: str):
    step = Step(tool="sql", arguments={"db": "farm", "q": "SELECT size FROM t", "rows": 3}, observation=happened, failed=True)
    found = blamed_step("list the sizes", Trajectory([step]))
    assert found is not None
    mistake = Mistake(found)
    assert mistake.is_repeated(Call(Step(tool="sql", arguments={"db": "farm", "q": "select size from t", "rows": 9})))
    assert not mistake.is_repeated(Call(Step(tool="sql", arguments={"db": "farm", "q": "SELECT size FROM t WHERE size > 1"})))
    assert not mistake.is_repeated(Call(Step(tool="sql", arguments={"db": "shop", "q": "SELECT size FROM t"})))


def test_what_a_person_refused_is_also_the_mistake_in_a_longer_call():
    step = Step(tool="shell", arguments={"command": "rm -r data"}, observation="The user rejected this call.", failed=True)
    found = blamed_step("free some space", Trajectory([step]))
    assert found is not None
    assert found.why == "refused"
    assert Mistake(found).is_repeated(Call(Step(tool="shell", arguments={"command": "rm -r data && echo done"})))


@pytest.mark.parametrize(("given", "about"), [({"q": "SELECT size FROM t"}, {}), ({}, {})])
def test_a_call_that_is_only_written_out_is_the_same_call(given: dict[str, str], about: dict[str, str]):
    said = 'sql({"q": "SELECT size FROM t"})'
    found = blamed_step("t", Trajectory([Step(said, "syntax error", tool="sql", arguments=given, failed=True)]))
    assert found is not None
    assert Mistake(found).is_repeated(Call(Step(said, tool="sql", arguments=about)))


def test_a_call_that_failed_without_arguments_is_not_the_one_with_them():
    found = blamed_step("t", Trajectory([Step(tool="search", observation="missing 1 required argument", failed=True)]))
    assert found is not None
    assert Mistake(found).is_repeated(Call(Step(tool="search")))
    assert not Mistake(found).is_repeated(Call(Step(tool="search", arguments={"q": "Turing"})))


@pytest.mark.parametrize("arguments", ['{"q": "git", "t": NaN}', '{"q": "git \\ud800"}', '{"q": 1e999}', "[" * 900, ""])
def test_whatever_was_stored_it_can_be_compared(arguments: str):
    stored = Blame(why="failed", tool="sh", action=f"sh({arguments})", happened="it failed", group="g", words=("git",))
    Mistake(stored).is_repeated(Call(Step(tool="sh", arguments={"q": "git push"})))


def test_who_knows_what_a_message_has_named_that_was_cut_short():
    found = blamed_step("t", Trajectory([Step("show nme", "x" * 500 + " show nme " + "y" * 500, failed=True)]))
    assert found is not None
    assert Mistake(found).is_repeated(Call(Step("show nme and age")))


def test_a_written_call_that_is_nested_deep_is_a_text():
    action = f'sql({{"q": "nme", "x": {"[" * 600}{"]" * 600}}})'
    call = Call(Step(action, tool="sql"))
    assert call.where == {}
    assert call.by_argument == {}
    assert {"q", "nme", "x"} <= call.words
