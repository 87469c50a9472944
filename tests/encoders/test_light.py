from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.lexical import MAX_TEXTS, Rarity, letter_terms, word_terms
from cascade_memory.encoders.light import ENDS, FEATURES, LightEncoder, SolutionClusters, standardised, whitening
from cascade_memory.ports.encoders import Candidates, Query


def _pairs(terms: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(terms[0].tolist(), terms[1].tolist(), strict=True))


def test_words_are_compared_without_case_and_punctuation():
    owners, buckets = word_terms(["Heat the CUP!", "cup, heat; the"])
    assert set(buckets[owners == 0]) == set(buckets[owners == 1])
    assert len(set(buckets)) == 3


texts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_terms_of_a_text_do_not_depend_on_its_company(many: list[str]):
    for terms in (word_terms, letter_terms):
        together = terms(many)
        assert _pairs(together) == {(i, bucket) for i, text in enumerate(many) for _, bucket in _pairs(terms([text]))}
        assert len(together[0]) == len(_pairs(together))
        assert (np.diff(together[0]) >= 0).all()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_words_are_hashed_one_by_one(text: str):
    import re

    words = {word for word in re.findall(r"[0-9a-z_\x80-\U0010ffff]+", text.lower()) if "\x00" not in word}
    each = {int(bucket) for word in words for bucket in word_terms([word.replace("\x00", " ")])[1]}
    assert set(word_terms([text.replace("\x00", " ")])[1].tolist()) <= each | set()


def test_overlap_is_one_with_itself_zero_with_a_stranger_and_weighs_rare_words_more():
    words = Rarity(word_terms)
    words.add(["the cup", "the lamp", "the desk", "the fridge"])
    same, stranger, common, rare = words.shared("the cup", ["the cup", "gold", "the lamp", "a cup"])
    assert same == np.float32(1.0)
    assert stranger == 0.0
    assert common < rare


def test_overlap_of_nothing_is_nothing():
    words = Rarity(word_terms)
    assert words.shared("cup", ["", "!"]).tolist() == [0.0, 0.0]
    assert words.shared("!", ["cup"]).tolist() == [0.0]


def test_more_texts_than_fit_one_call_are_split():
    assert HashingEmbedder(8).embed(["a"] * (MAX_TEXTS + 3)).shape == (MAX_TEXTS + 3, 8)


def test_the_cluster_of_a_solution_is_nearest_to_queries_like_its_own():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2, 16)).astype(np.float32)
    vectors, groups = [], []
    for i in range(200):
        group = i % 2
        noise = rng.normal(size=16).astype(np.float32) * np.r_[np.full(8, 3.0), np.full(8, 0.3)].astype(np.float32)
        vectors.append(centres[group] + noise)
        groups.append(group)
    table = np.array(vectors, np.float32)
    clusters = SolutionClusters(16, lambda keys: table[np.asarray(keys)])
    for key, group in enumerate(groups):
        clusters.retain(np.array([key]), np.array([group]), table[key][None])
    right = 0
    for i in range(100):
        noise = rng.normal(size=16).astype(np.float32) * np.r_[np.full(8, 3.0), np.full(8, 0.3)].astype(np.float32)
        scores = clusters.scores(centres[i % 2] + noise, np.array([0, 1]), table[:2])
        right += int(scores.argmax()) == i % 2
    assert right > 90  # the noisy half of the space is discounted


def test_a_solution_with_one_case_is_as_far_as_that_case():
    table = np.eye(4, dtype=np.float32)
    clusters = SolutionClusters(4, lambda keys: table[np.asarray(keys)])
    clusters.retain(np.array([0]), np.array([7]), table[0][None])
    near, far = clusters.scores(table[0], np.array([7, 9]), table[[0, 1]])
    assert near == 0.0
    assert far == np.float32(-0.5 * 2.0 * 0.5)  # half the squared distance, shrunk by n / (n + 1)


def test_cases_make_the_same_clusters_together_and_one_by_one_also_if_the_first_one_was_evicted():
    table = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    table[0] = 0.0  # the only case of the solution was evicted before
    together, apart = (SolutionClusters(8, lambda keys: table[np.asarray(keys)]) for _ in range(2))
    keys, groups = np.arange(4), np.zeros(4, np.int64)
    together.retain(keys[:1], groups[:1], table[:1])
    together.retain(keys[1:], groups[1:], table[1:])
    for key in range(4):
        apart.retain(keys[key : key + 1], groups[key : key + 1], table[key : key + 1])
    assert together.several[0][1] == apart.several[0][1] == 3
    assert np.array_equal(together.several[0][0], apart.several[0][0])


def test_whitening_of_a_sphere_is_a_sphere():
    w = whitening(np.eye(3) * 4.0, n=100)
    np.testing.assert_allclose(w @ w.T, np.eye(3), atol=1e-5)


def test_a_column_without_differences_says_nothing():
    columns = np.column_stack([np.array([0.5, 0.25]), np.full(2, 0.3)]).astype(np.float32)
    np.testing.assert_allclose(standardised(columns), [[1.0, 0.0], [-1.0, 0.0]])
    assert standardised(np.array([[0.3, 0.1]], np.float32)).tolist() == [[0.0, 0.0]]


def test_the_features_are_what_their_names_say():
    cases = Candidates(
        keys=np.array([1, 2]),
        texts=["heat the cup", "cool the plate"],
        heads=["use the microwave", "use the fridge to cool"],
        vectors=np.eye(2, dtype=np.float32),
        groups=np.array([1, 2]),
    )
    encoder = LightEncoder(2, lambda keys: cases.vectors[np.asarray(keys) - 1])
    encoder.retain(cases)
    query = Query(text="cool the cup", vector=np.array([0.6, 0.8], np.float32))
    features = encoder.encode(query, cases, cases.vectors @ query.vector)
    by_name = dict(zip(FEATURES, features.T, strict=True))
    for name in ("similarity", "cluster", "solution words"):
        np.testing.assert_allclose(by_name[name], [-1.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(by_name["words"], [0.0, 0.0])  # each shares two of its three words

    for end in ENDS:
        np.testing.assert_allclose(by_name[end], [0.0, 0.0])  # the query has one paragraph


def test_last_paragraphs_are_compared_as_well():
    room = (
        "You are in a room. You see a cup, a plate, a fridge and a table.\n\n" + "There is nothing of note here. " * 20 + "\n\n"
    )
    cases = Candidates(
        keys=np.array([1, 2]),
        texts=[f"{room}Heat the cup.", "You are in a garden.\n\nCool the plate."],
        heads=["", ""],
        vectors=np.eye(2, dtype=np.float32),
        groups=np.array([1, 2]),
    )
    encoder = LightEncoder(2, lambda keys: cases.vectors[np.asarray(keys) - 1])
    encoder.retain(cases)
    encoder.alignment.weights = np.ones(2, np.float32)  # too few cases to find out
    query = Query(text=f"{room}Cool the pan.\n", vector=np.array([1.0, 0.0], np.float32))
    by_name = dict(zip(FEATURES, encoder.encode(query, cases, cases.vectors @ query.vector).T, strict=True))
    np.testing.assert_allclose(by_name["closing"], [-1.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(by_name["opening"], [1.0, -1.0], atol=1e-5)


def test_first_paragraphs_are_compared_where_the_query_has_several():
    room = "\n\nYou are in the kitchen. There are a cup, a plate, a fridge, a microwave and a table."
    cases = Candidates(
        keys=np.array([1, 2, 3]),
        texts=[f"heat the cup{room}", "cool the plate\n\nYou are in the garden.", "cool the plate"],
        heads=["", "", ""],
        vectors=np.eye(3, dtype=np.float32),
        groups=np.array([1, 2, 3]),
    )
    encoder = LightEncoder(3, lambda keys: cases.vectors[np.asarray(keys) - 1])
    encoder.retain(cases)
    encoder.alignment.weights = np.ones(2, np.float32)  # too few cases to find out
    query = Query(text=f"cool the pan{room}", vector=np.array([1.0, 0.0, 0.0], np.float32))
    opening = encoder.encode(query, cases, cases.vectors @ query.vector)[:, FEATURES.index("opening")]
    np.testing.assert_allclose(opening[1], opening[2])
    assert opening[0] < opening[1]
    letters = encoder.encode(query, cases, cases.vectors @ query.vector)[:, FEATURES.index("letters")]
    assert letters[0] > letters[1]  # over all of the text, the room decides


def test_a_memory_with_like_words_recalls_by_them():
    embed = HashingEmbedder(64).embed
    same, other = embed(["", "!!"])
    assert np.isfinite(same).all()
    assert np.linalg.norm(other) > 0.99
