"""Word counts take little memory in a small namespace, and are the same numbers as in a table of all buckets."""

from __future__ import annotations

import tracemalloc

import numpy as np

from cascade_memory.encoders.lexical import BUCKETS, Rarity, Tally, letter_terms, word_terms
from cascade_memory.encoders.light import SolutionClusters


def test_the_counts_are_those_of_a_table_bit_for_bit_while_it_grows():
    rng, tally, table = np.random.default_rng(0), Tally(BUCKETS), np.zeros(BUCKETS, np.float32)
    for round_ in range(120):  # ends with many more buckets than are kept one by one
        distinct = bool(round_ % 2)
        new = rng.integers(0, BUCKETS, 60).astype(np.int32)
        new = np.unique(new) if distinct else new
        tally.add(new, distinct=distinct)
        table += np.bincount(new, minlength=BUCKETS).astype(np.float32)
        asked = rng.integers(0, BUCKETS, 500).astype(np.int32)
        asked[:60] = np.resize(new, 60)
        assert tally.of(asked).tobytes() == table.take(asked).tobytes()
        assert tally.dense().tobytes() == table.tobytes()


def test_similarities_do_not_depend_on_how_the_texts_were_added():
    texts = [f"ticket {i} about {word} and {word[::-1]}" for i, word in enumerate(["paper", "screen", "router", "cable"] * 9)]
    one_by_one, at_once = Rarity(letter_terms), Rarity(letter_terms)
    for text in texts:
        one_by_one.add([text])
    at_once.add(texts)
    shared = one_by_one.shared("the router is down", texts)
    assert shared.tobytes() == at_once.shared("the router is down", texts).tobytes()
    assert shared.any()


def test_what_a_small_namespace_counts_takes_kilobytes():
    texts = [f"ticket {i} about a printer that jams" for i in range(10)]
    tracemalloc.start()
    words, letters = Rarity(word_terms), Rarity(letter_terms)
    clusters = SolutionClusters(384, lambda keys: np.zeros((len(keys), 384), np.float32))
    words.add(texts)
    letters.add(texts)
    clusters.retain(np.arange(10), np.arange(10), np.zeros((10, 384), np.float32))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (words.texts, letters.texts, len(clusters.single)) == (10, 10, 10)
    assert size < 32_000
