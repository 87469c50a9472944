"""What a stored call says of its arguments, whatever stands in it."""

from __future__ import annotations

import pytest

from cascade_memory.cycle.places import Call, Mistake
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.trajectory import Step

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
