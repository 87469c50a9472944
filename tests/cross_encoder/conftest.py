"""A small reranker for each module, and a memory on top of it."""

from __future__ import annotations

import pytest
from tiny_models import make_reranker

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    """The folder of a small reranker."""
    return str(make_reranker(tmp_path_factory.mktemp("reranker")))


@pytest.fixture
def learning(reranker, tmp_path):
    """Opens a memory in a folder whose encoder is trained after every fourth reward."""
    opened = []

    def open_memory(path=tmp_path / "m", **options) -> CascadeMemory:
        schedule = options.pop("schedule", Schedule(every=4))
        ranker = cross_encoder(reranker, schedule=schedule, encoder_learning_rate=1e-3, **options.pop("ranker", {}))
        settings = {"embedder": "hashing", "learn": "inline", "ranking": Ranking(candidates=6), **options}
        opened.append(CascadeMemory(path, ranker=ranker, **settings))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()
