"""The vectors of a stream are computed once; a text that was not among its queries is embedded when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.bench import stage
from cascade_memory.evaluation.bench.plan import Suite
from cascade_memory.evaluation.bundled import bundled_data
from cascade_memory.evaluation.model import Model
from cascade_memory.evaluation.model.chat import Reply
from cascade_memory.evaluation.outcomes import Outcomes, ask_all
from cascade_memory.evaluation.stream import Attempt, PrecomputedEmbedder, play
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


class Silent:
    name = "silent"
    settings: ClassVar[dict[str, Any]] = {"temperature": 0}

    def complete(self, messages: Any, note: Any) -> Reply:
        return Reply("", 1, 1)


def test_runs_that_begin_together_embed_their_stream_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    class Slow(HashingEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            asked.append(len(texts))
            time.sleep(0.1)
            return super().embed(texts)

    monkeypatch.setattr(stage, "best_embedder", lambda folder: Slow())
    stage.embedded.cache_clear()
    try:
        with Outcomes(tmp_path / "table", Silent()) as outcomes:
            suite = Suite(tasks=["banking77"], methods=["zero-shot", "similarity"], seeds=3, limit=5)
            ask_all(suite, data=bundled_data(), solver=Model(chat=outcomes))
    finally:
        stage.embedded.cache_clear()
    assert len(asked) == 1
