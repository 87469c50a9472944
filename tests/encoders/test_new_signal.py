"""What somebody does who adds a ranking signal, and what must not go wrong silently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranker
from cascade_memory.assembly.rankers import START
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.light import ENDS, FEATURES, LightEncoder
from cascade_memory.ports.encoders import Candidates, Query


class WithLength(LightEncoder):
    """One signal more: how much longer the candidate's query is."""

    identity = "light-6-length"
    features = (*FEATURES, "length")

    def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
        longer = np.array([len(text) - len(query.text) for text in candidates.texts], np.float32)
        return {**super().signals(query, candidates, similarity), "length": longer}


def with_length() -> Ranker:
    start = np.append(START, 0.0)
    return Ranker(
        name="light with length",
        encoder=WithLength,
        policy=lambda: LightPolicy(len(start), start=start),
        features=WithLength.features,
    )


def _taught(memory: CascadeMemory, rounds: range) -> None:
    for number in rounds:
        recall = memory.recall(f"return order {number}")
        memory.reward(recall.episode_id, float(number % 2), solution="refund" if number % 3 else "resend")


KINDS = ("please refund the whole order", "send the parcel once more", "cancel what has not left yet", "tell me when it comes")
LETTERS = [
    f"Dear shop.\n\nIt is about the order {number} of {number % 7} days ago.\n\n{KINDS[number % 4]}" for number in range(61)
]


def _features(encoder: type[LightEncoder]) -> np.ndarray:
    """What an encoder that has seen sixty letters says of eleven when the last one comes."""
    embedder = HashingEmbedder()
    vectors, keys = embedder.embed(LETTERS), np.arange(60)
    made = encoder(embedder.dimension, lambda wanted: vectors[wanted])

    def stored(at: np.ndarray) -> Candidates:
        heads, texts = [f"{KINDS[key % 4]} done" for key in at], [LETTERS[key] for key in at]
        return Candidates(keys=at, texts=texts, heads=heads, vectors=vectors[at], groups=at % 4)

    made.retain(stored(keys))
    return made.encode(Query(text=LETTERS[60], vector=vectors[60]), stored(keys[:11]), vectors[:11] @ vectors[60])


def test_one_signal_more_changes_none_of_the_others():
    ours, theirs = _features(LightEncoder), _features(WithLength)
    assert theirs.shape == (11, len(FEATURES) + 1)
    np.testing.assert_array_equal(theirs[:, :-1], ours)
    assert ours[:, [FEATURES.index(end) for end in ENDS]].any(), "the ends say nothing here, so that their scale is not tested"
    assert theirs[:, -1].std() == pytest.approx(1.0)


class WithoutItsName(WithLength):
    features = FEATURES


class WithoutItsColumn(LightEncoder):
    features = WithLength.features


class NamedTwice(WithLength):
    features = (*WithLength.features, "words")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (WithoutItsName, "length without a name"),
        (WithoutItsColumn, "length without a column"),
        (NamedTwice, "words named twice"),
    ],
)
def test_a_signal_needs_a_name_and_a_column(wrong: type[LightEncoder], why: str):
    with pytest.raises(ValueError, match=why):
        _features(wrong)


COLUMNS = {
    "too short": (np.zeros(10, np.float32), r"'length' has the shape \(10,\), not \(11,\)"),
    "a number": (np.float32(1.0), r"'length' has the shape \(\)"),
    "a table": (np.zeros((11, 1), np.float32), r"'length' has the shape \(11, 1\)"),
    "nothing": (None, r"'length' has the shape \(\)"),
    "texts": (np.array(["a"] * 11), "'length' has values of the type <U1"),
    "complex": (np.zeros(11, np.complex64), "'length' has values of the type complex64"),
    "objects": (np.array([1.0] * 11, object), "'length' has values of the type object"),
    "one that is none": (np.array([np.nan] + [0.0] * 10, np.float32), "'length' has values that are nan"),
    "one that has no end": (np.array([np.inf] + [0.0] * 10, np.float32), "'length' has values that are nan, infinite"),
    "huge": (np.full(11, 1e30, np.float32), "'length' has values that are nan, infinite, or beyond"),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_that_would_teach_nothing_is_refused_by_its_name(kind: str):
    column, why = COLUMNS[kind]

    class Wrong(WithLength):
        def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
            return {**super().signals(query, candidates, similarity), "length": column}  # type: ignore[dict-item]

    with pytest.raises(ValueError, match=why):
        _features(Wrong)


def test_a_memory_whose_signal_is_refused_says_which_one_it_is():
    class Nan(WithLength):
        def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
            return {**super().signals(query, candidates, similarity), "length": similarity * np.nan}

    start = np.append(START, 0.0)
    ranker = Ranker(name="nan", encoder=Nan, policy=lambda: LightPolicy(10, start=start), features=Nan.features)
    with CascadeMemory(embedder="hashing", ranker=ranker, learn="inline") as memory:
        memory.add("return order", "refund")
        recall = memory.recall("return order 7")
        assert len(recall.cases) == 1  # by similarity
        assert not memory.health().ok
        assert "the signal 'length' has values that are nan" in str(memory.health().last_error)


def test_signals_are_only_ever_added_at_the_end():
    known = ("similarity", "cluster", "words", "letters", "solution words", "opening", "closing", "form", "metadata")
    assert known == FEATURES, "stored rows get zeros on the right: a new signal goes to the end, of this list too"


@pytest.mark.parametrize("start", [START, np.append(START, np.nan)])
def test_every_signal_starts_with_a_weight(start: np.ndarray):
    with pytest.raises(ValueError, match="start must be 10 finite numbers"):
        LightPolicy(10, start=start)


def test_a_ranker_with_one_signal_more_goes_on_from_what_was_rewarded_before(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        _taught(memory, range(12))
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline", ranker=with_length()) as memory:
        assert state_of(memory).policy.rewards == 12
        _taught(memory, range(12, 20))
        assert state_of(memory).policy.rewards == 20
