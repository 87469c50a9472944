"""The vectors of a stream are computed once; a text that was not among its queries is embedded when it is asked for."""

from __future__ import annotations

import numpy as np

from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.evaluation.stream import PrecomputedEmbedder, play
from cascade_memory.memory import Memory

QUERIES = ["Log in as Ann, the word is swordfish1", "Log in as Bo, the word is swordfish2"]


def test_texts_are_looked_up_or_embedded():
    plain, computed = HashingEmbedder(), PrecomputedEmbedder(HashingEmbedder(), QUERIES)
    for texts in (QUERIES, ["another text", *QUERIES, "another text"], []):
        vectors = computed.embed(texts)
        assert vectors.shape == (len(texts), plain.dimension)
        assert vectors.dtype == np.float32
        if texts:
            assert np.array_equal(vectors, plain.embed(texts))


class LogsIn:
    def attempt(self, place, cases):
        return Attempt(True, f"log_in(password='swordfish{place + 1}')")


def test_a_secret_that_only_the_solution_shows_is_taken_out_of_the_query_and_nothing_fails():
    memory: Memory = CascadeMemory(embedder=PrecomputedEmbedder(HashingEmbedder(), QUERIES), learn="inline")
    with memory:
        for place, query in enumerate(QUERIES):
            play(memory, query, LogsIn(), place)
        assert memory.health().ok
        (case, *_) = memory.recall("Log in as Ann").cases
        assert "swordfish" not in f"{case.query} {case.solution}"
