"""A signal whose meaning changes begins anew, even if its name stays; what was logged under another version still teaches."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranker, Ranking
from cascade_memory.assembly.rankers import START
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.encoders.meaning import identity_of, meanings_of, noted
from cascade_memory.learning.columns import Columns
from cascade_memory.learning.shared_head import SharedWeights
from cascade_memory.ports.encoders import Candidates, Query
from cascade_memory.ports.policy import Feedback, Slate

LENGTH = len(FEATURES)  # the place of the added signal


class Longer(LightEncoder):
    """One signal more: how much longer the candidate's query is."""

    identity = "light-6-length"
    features = (*FEATURES, "length")
    sign = 1.0

    def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
        longer = np.array([len(text) - len(query.text) for text in candidates.texts], np.float32)
        return {**super().signals(query, candidates, similarity), "length": self.sign * longer}


class Shorter(Longer):
    """The same after somebody has edited the function: the opposite, under the same name."""

    sign = -1.0


class InMetres(Longer):
    """The same in another unit."""

    sign = 0.001


def ranker_of(encoder: type[LightEncoder], *, shared: bool = False) -> Ranker:
    start = np.append(START, 0.0)
    weights = SharedWeights(lambda: LightPolicy(10, start=start)) if shared else None
    lean_on = None if weights is None else weights.mean
    return Ranker(
        name="light with length",
        encoder=encoder,
        policy=lambda: LightPolicy(10, start=start, lean_on=lean_on),
        features=encoder.features,
        shared=weights,
    )


def opened(path: Path, encoder: type[LightEncoder] | None) -> CascadeMemory:
    ranker = "light" if encoder is None else ranker_of(encoder)
    return CascadeMemory(path, embedder="hashing", ranker=ranker, learn="inline", ranking=Ranking(abstain=False))


WORDS = ("parcel", "order", "card", "screen", "lamp", "bill")
ASKED = [f"the {word} is gone, and here follows a good deal more about {number}" for number, word in enumerate(WORDS)]


def taught(memory: CascadeMemory, rounds: range) -> None:
    """The long cases are always right, so that the signal earns a weight. Each success is stored already."""
    if not memory.stats().cases:
        memory.add([(f"the {word} {number}", "resend") for number, word in enumerate(WORDS)])
        memory.add([(asked, "refund") for asked in ASKED])
    for number in rounds:
        recall = memory.recall(ASKED[number % len(ASKED)])
        memory.reward(recall.episode_id, 1.0, solution="refund")


def weights_of(memory: CascadeMemory) -> np.ndarray:
    return state_of(memory).policy.head.posterior.mean


@pytest.mark.parametrize("shared", [False, True])
def test_a_signal_with_another_meaning_begins_anew_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, shared: bool
):
    def memory_with(encoder: type[LightEncoder]) -> CascadeMemory:
        ranker, scope = ranker_of(encoder, shared=shared), "shared" if shared else "namespace"
        return CascadeMemory(
            tmp_path / "m",
            embedder="hashing",
            ranker=ranker,
            learn="inline",
            ranking=Ranking(abstain=False, policy_scope=scope),
        )

    with memory_with(Longer) as memory:
        taught(memory, range(30))
        before = weights_of(memory)
        assert before[LENGTH] > 0.1
    with memory_with(Shorter) as memory:
        memory.recall(ASKED[0])
        after = weights_of(memory)
        assert after[LENGTH] == pytest.approx(0.0, abs=1e-6)
        assert state_of(memory).policy.rewards == 30  # the other signals keep what they learned
        assert np.abs(after[:LENGTH] - START).max() > 0.1
        warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert warned
        assert all("the meaning of the ranking signals 'length' has changed" in text for text in warned)
        taught(memory, range(30, 60))
        assert weights_of(memory)[LENGTH] < -0.1  # and it learns the new meaning


def test_a_signal_that_stays_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with opened(tmp_path / "m", Longer) as memory:
        taught(memory, range(30))
        before = weights_of(memory)
    for encoder in (Longer, InMetres):  # its scale does not matter
        with opened(tmp_path / "m", encoder) as memory:
            memory.recall(ASKED[0])
            np.testing.assert_allclose(weights_of(memory), before, atol=1e-6)
    assert not caplog.records


def test_a_reward_that_comes_after_the_change_teaches_nothing_about_the_signal(tmp_path: Path):
    with opened(tmp_path / "m", Longer) as memory:
        taught(memory, range(1))
        pending = [memory.recall(ASKED[number % len(ASKED)]).episode_id for number in range(20)]
    with opened(tmp_path / "m", Shorter) as memory:
        for episode in pending:
            memory.reward(episode, 1.0, solution="refund")
        assert weights_of(memory)[LENGTH] == pytest.approx(0.0, abs=1e-6)
        assert state_of(memory).policy.rewards == 21


def test_what_a_newer_version_learned_counts_in_the_older_one(tmp_path: Path):
    """The older one lacks the last signal, and only that is lost."""
    with opened(tmp_path / "m", None) as memory:
        taught(memory, range(10))
    with opened(tmp_path / "m", Longer) as memory:
        taught(memory, range(10, 70))
    with opened(tmp_path / "m", None) as memory:
        taught(memory, range(70, 71))
        assert state_of(memory).policy.rewards == 71
        assert np.abs(weights_of(memory) - START).max() > 0.1


def logged(identity: str, width: int) -> Feedback:
    slate = Slate(features=np.ones((2, width)), similarity=np.ones(2), groups=np.arange(2))
    places = np.zeros(1, np.int64)
    return Feedback(
        key=1, slate=slate, chosen=places, context=np.zeros(3), shown=True, reward=1.0, agreement=None, encoder=identity
    )


NINE, TEN = [1.0] * 9, [1.0] * 10
READ = {
    "of the same encoder": ("light-6", "light-6", 9, NINE),
    "of an older version": ("light-6", "light-2", 5, [1.0] * 5),  # the policy fills it up
    "of a newer version": ("light-6", "light-7", 10, NINE),
    "before there were notes": ("mine [9=aaaaaa]", "mine", 10, TEN),
    "before there were notes, of another encoder": ("mine [9=aaaaaa]", "light-6", 10, [*NINE, 0.0]),
    "another built-in meaning": ("light-6 [2=aaaaaa]", "light-6 [2=bbbbbb]", 9, [1.0, 1.0, 0.0, *[1.0] * 6]),
    "the built-in meaning again": ("light-6", "mine [2=bbbbbb]", 9, [1.0, 1.0, 0.0, *[1.0] * 6]),
    "another name": ("mine-2 [9=aaaaaa]", "mine-1 [9=aaaaaa]", 10, TEN),
    "not to be tried": ("mine [9=?]", "mine [9=?]", 10, TEN),
    "not to be tried, another name": ("mine-2 [9=?]", "mine-1 [9=?]", 10, [*NINE, 0.0]),
    "of another kind": ("light-6", "cosine-1", 11, [1.0] * 11),
    "of nobody knows what": ("light-6", "", 10, TEN),
    "of a ranker that failed": ("light-6", "mine [9=aaaaaa]", 0, []),
}


@pytest.mark.parametrize("kind", READ)
def test_only_columns_that_mean_the_same_are_read(kind: str):
    now, then, width, expected = READ[kind]
    names = (*FEATURES, "length")[: 10 if "9=" in now else 9]
    (read,) = Columns(now, names).read([logged(then, width)])
    assert read.slate.features.tolist() == [expected, expected]


@pytest.mark.parametrize("edited", ["mine [9=]", f"mine [{'9' * 5_000}=a]", "[9=a]", "mine [9=a", " [" * 2_000, "mine [x=a]"])
def test_an_identity_that_somebody_edited_is_a_name_like_any_other(edited: str):
    assert noted(edited) == (edited, {})


def test_an_identity_that_is_no_text_does_not_stop_the_learning(tmp_path: Path):
    with opened(tmp_path / "m", Longer) as memory:
        taught(memory, range(3))
    with contextlib.closing(sqlite3.connect(tmp_path / "m" / "ledger.sqlite3")) as connection, connection:
        connection.execute("UPDATE recall SET encoder = x'ff' WHERE key = 1")
    with opened(tmp_path / "m", Shorter) as memory:
        memory.recall(ASKED[0])
        assert state_of(memory).policy.rewards == 3


# -- identities ------------------------------------------------------------------------------------------------------


def named(encoder: type[LightEncoder], dimension: int = 4) -> str:
    return identity_of(encoder(dimension, lambda keys: np.zeros((len(keys), dimension), np.float32)), encoder)


def test_the_built_in_columns_have_no_note_and_the_embedder_changes_none():
    assert named(LightEncoder) == "light-6"
    assert named(Longer).startswith("light-6-length [9=")
    assert named(Longer) == named(Longer, dimension=384) == named(InMetres)
    assert named(Shorter) != named(Longer)


def test_a_built_in_column_that_is_overridden_has_a_note():
    class Words(LightEncoder):
        identity = "mine"

        def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
            return {**super().signals(query, candidates, similarity), "words": -similarity}

    assert named(Words).startswith(f"mine [{FEATURES.index('words')}=")


def test_the_meaning_of_a_signal_can_be_declared(caplog: pytest.LogCaptureFixture):
    draws = itertools.count()

    class Drawn(Longer):
        def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
            random = np.random.default_rng(next(draws)).random(len(candidates))
            return {**super().signals(query, candidates, similarity), "length": random}

    assert named(Drawn) == "light-6-length [9=?]"
    assert "the signals 'length' of Drawn have other values each time" in caplog.text
    caplog.clear()

    class Declared(Drawn):
        meanings: ClassVar = {"length": "1"}

    class Changed(Drawn):
        meanings: ClassVar = {"length": "2"}

    assert named(Declared) == named(Declared)
    assert named(Declared) != named(Changed)
    assert not caplog.records


def test_signals_that_fail_on_the_examples_say_so_and_hinder_nothing(caplog: pytest.LogCaptureFixture):
    class Known(Longer):
        lengths: ClassVar = {77: 1.0}

        def signals(self, query: Query, candidates: Candidates, similarity: np.ndarray) -> dict[str, np.ndarray]:
            known = np.array([self.lengths[key] for key in candidates.keys.tolist()])
            return {**super().signals(query, candidates, similarity), "length": known}

    assert named(Known) == "light-6-length [9=?]"
    assert "the signals of Known cannot be computed on examples (KeyError(1))" in caplog.text


def test_the_built_in_columns_mean_what_they_meant():
    """If this fails, a column has another meaning than in folders that exist.

    Then give it a version in ``LightEncoder.meanings``, such as ``{"words": "2"}``, change the number of
    ``LightEncoder.identity``, and put the new value here.
    """
    assert LightEncoder.meanings == {}
    assert meanings_of(LightEncoder) == {
        "similarity": "d27212",
        "cluster": "9340a2",
        "words": "53e15f",
        "letters": "0d0034",
        "solution words": "9a6b71",
        "opening": "2ddddd",
        "closing": "b306b1",
        "form": "c82f4f",
        "metadata": "505dc6",
    }
