"""A password that was announced once is also found where it stands alone, if no ordinary word is like it."""

from __future__ import annotations

import pytest
from invented_secrets import Invented

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.redaction import KINDS
from cascade_memory.redaction.marking import Marks

SHORT = "a1B2" + "c3!"


def typed(word: str, *, others: int = 0) -> str:
    some = Invented(61)
    steps = [Step(tool="login", arguments={"password": some.of(10)}) for _ in range(others)]
    steps += [Step(tool="login", arguments={"password": word}), Step(action="look", observation=f"then typed {word} again")]
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        case = memory.cases.get(memory.add("log in", Trajectory(steps)))
    assert isinstance(case.solution, Trajectory)
    return case.solution.steps[-1].observation


@pytest.mark.parametrize(
    "word",
    [
        "correct-" + "Horse!",
        "correct" + "Horse",
        "sun" + "flower!",
        "blau" + "#grün",
        SHORT,
        "aB3" + "cD4",
        "one two three four",
    ],
)
def test_what_no_ordinary_word_is_like_is_found_alone(word: str):
    assert typed(word) == "then typed [secret:password#1] again"


@pytest.mark.parametrize(
    "word", ["blue", "sunflower", "Sunflower", "well-known", "Ann Miller", "the garden key", "abc123", "x7!"]
)
def test_what_could_be_an_ordinary_word_is_not(word: str):
    assert typed(word) == f"then typed {word} again"


def test_so_are_the_first_256_of_a_record():
    word = Invented(62).of(10)
    assert typed(word, others=255) == "then typed [secret:password#256] again"
    assert typed(word, others=256) == f"then typed {word} again"


def test_of_two_secrets_the_longer_one_is_looked_for_first():
    marks, word = Marks(), Invented(63).of(9)
    marks.mark(f"password={word} and password={word}7x")
    assert marks.again(f"{word}7x, {word}") == "[secret:password#2], [secret:password#1]"


@pytest.mark.parametrize("part", ["password#1", "[secret:api-key#1]", "secret:token#12", "azure-signature#3]", "#123456"])
def test_a_secret_that_is_like_a_part_of_a_placeholder_spoils_none(part: str):
    assert "azure-signature" in KINDS
    marks = Marks()
    marks.whole(part, "password")
    text = "[secret:password#1] [secret:api-key#1] [secret:token#12] [secret:azure-signature#3] [secret:token#123456]"
    assert marks.again(text) == text
