"""Which paragraph counts is found out from the cases: one that says what to do does, a greeting does not."""

from __future__ import annotations

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.encoders.alignment import TEXT_CHARS, Alignment, ends_of, has_ends
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.lexical import Rarity, letter_terms
from cascade_memory.ports.encoders import Candidates

TASKS = {"heat the {}": "microwave", "wash the {}": "sinkbasin", "chill the {}": "fridge", "find the {}": "drawer"}
THINGS = ("saucepan", "mug", "potato", "lettuce", "kettle", "bowl", "tomato", "plate")
GREETINGS = ("Hello there,", "Dear all,", "Good morning,", "Hi,")
NAMES = ("Anna Berg", "Tom Smith", "Li Wei", "Marco Rossi", "Sara Khan")


def cases(n: int, order: str, seed: int = 0) -> Candidates:
    """Texts of a greeting, a task and a signature in this order ("gts" or another); the solution depends on the task."""
    rng = np.random.default_rng(seed)
    texts, solutions = [], []
    for _ in range(n):
        task, device = list(TASKS.items())[rng.integers(len(TASKS))]
        parts = {
            "g": str(rng.choice(GREETINGS)),
            "t": task.format(rng.choice(THINGS)),
            "s": f"Kind regards, {rng.choice(NAMES)}",
        }
        texts.append("\n\n".join(parts[one] for one in order))
        solutions.append(f"go to the {device} and use it")
    groups = np.unique(solutions, return_inverse=True)[1]
    vectors = HashingEmbedder(64).embed(texts)
    return Candidates(keys=np.arange(n), texts=texts, heads=solutions, vectors=vectors, groups=groups)


def weights_of(stored: Candidates) -> list[float]:
    rarity, alignment = Rarity(letter_terms), Alignment()
    rarity.add(stored.texts)
    alignment.retain(stored, rarity)
    return [float(weight) for weight in alignment.weights]


@pytest.mark.parametrize(("order", "opening", "closing"), [("gts", False, False), ("tgs", True, False), ("gst", False, True)])
def test_a_paragraph_counts_that_says_what_the_solution_is(order, opening, closing):
    for seed in range(3):
        weights = weights_of(cases(80, order, seed))
        for weight, says in zip(weights, (opening, closing), strict=True):
            assert weight > 0.6 if says else weight < 0.1


def test_a_few_cases_say_nothing_and_many_are_looked_at_now_and_then():
    assert weights_of(cases(1, "tgs")) == [0.0, 0.0]
    assert max(weights_of(cases(8, "gts"))) == 0.0
    alignment, rarity = Alignment(), Rarity(letter_terms)
    stored = cases(2_000, "tgs")
    rarity.add(stored.texts)
    alignment.retain(stored, rarity)
    assert alignment.compared.pairs < 16 * 1_100
    assert alignment.weights[0] > 0.75


def test_one_by_one_or_all_at_once():
    stored = cases(40, "tgs")
    rarity, one_by_one = Rarity(letter_terms), Alignment()
    rarity.add(stored.texts)
    for i in range(len(stored)):
        here = slice(i, i + 1)
        one_by_one.retain(
            Candidates(
                keys=stored.keys[here],
                texts=stored.texts[here],
                heads=stored.heads[here],
                vectors=stored.vectors[here],
                groups=stored.groups[here],
            ),
            rarity,
        )
    np.testing.assert_allclose(one_by_one.weights, weights_of(stored), rtol=1e-5)


def test_paragraphs_of_every_platform():
    for between in ("\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n"):
        text = f"  a room{between}a fridge{between}put it away\n"
        assert has_ends(text)
        assert ends_of(text) == ("a room", "put it away")
    assert not has_ends("one line\nanother line\n\n")
    assert ends_of("one line") == ("one line", "one line")
    assert ends_of("a task\n\n" + "x" * TEXT_CHARS) == ("a task", "")  # where it ends is not known


def test_letters_are_found_by_what_stands_between_greeting_and_signature():
    stored = cases(160, "gts")
    with (
        CascadeMemory(embedder=HashingEmbedder(64), learn="inline") as memory,
        CascadeMemory(embedder=HashingEmbedder(64), learn="inline", ranker="similarity") as similar,
    ):
        for one in (memory, similar):
            one.add(list(zip(stored.texts, stored.heads, strict=True)), progress=False)
        asked = cases(60, "gts", seed=1)
        right = [
            [one.recall(text).cases[0].solution == solution for text, solution in zip(asked.texts, asked.heads, strict=True)]
            for one in (memory, similar)
        ]
    assert np.mean(right[0]) >= np.mean(right[1]) - 0.05
