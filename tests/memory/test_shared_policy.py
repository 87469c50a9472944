"""Namespaces may learn together what ranking is about, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import similarity
from cascade_memory.errors import InvalidInput


def _weights(memory: CascadeMemory, namespace: str) -> np.ndarray:
    return np.array(state_of(memory, namespace).policy.head.posterior.mean)  # type: ignore[attr-defined]


def _live(memory: CascadeMemory, namespace: str, episodes: int, seed: int = 0) -> None:
    """A world in which the rare word decides, and most of the words are noise."""
    rng = random.Random(f"{namespace} {seed}")
    for _ in range(episodes):
        kind = rng.randrange(6)
        query = " ".join([f"part{kind}", *rng.choices([f"noise{i}" for i in range(8)], k=7)])
        recall = memory.acting(namespace=namespace).recall(query)
        memory.acting(namespace=namespace).reward(recall.episode_id, 1.0, solution=f"do {kind}")


@pytest.fixture
def shared(tmp_path: Path):
    with CascadeMemory(
        tmp_path / "memory", embedder="hashing", learn="inline", ranking=Ranking(policy_scope="shared")
    ) as memory:
        yield memory


@pytest.mark.slow
def test_a_new_namespace_starts_from_what_the_others_learned_about_ranking(shared: CascadeMemory):
    for i in range(5):
        _live(shared, f"tenant{i}", 40)
    new = _weights(shared, "newcomer")
    with CascadeMemory(embedder="hashing", learn="inline") as alone:
        untrained = _weights(alone, "newcomer")
    assert np.abs(new - untrained).max() > 0.3
    mean = np.mean([_weights(shared, f"tenant{i}") for i in range(5)], axis=0)
    assert np.linalg.norm(new - mean) < np.linalg.norm(untrained - mean)


def test_cases_words_and_clusters_are_not_shared(shared: CascadeMemory):
    _live(shared, "a", 60)
    encoder = state_of(shared, "b").encoder
    assert encoder.words.texts == 0  # type: ignore[attr-defined]
    assert not encoder.clusters.several  # type: ignore[attr-defined]
    assert shared.acting(namespace="b").recall("part1 noise2").cases == ()


@pytest.mark.slow
def test_what_was_learned_together_survives_a_restart(tmp_path: Path):
    options = {"embedder": "hashing", "learn": "inline", "ranking": Ranking(policy_scope="shared")}
    with CascadeMemory(tmp_path / "memory", **options) as memory:
        for i in range(4):
            _live(memory, f"tenant{i}", 30)
        before = _weights(memory, "newcomer")
    with CascadeMemory(tmp_path / "memory", **options) as memory:
        np.testing.assert_allclose(_weights(memory, "another newcomer"), before, atol=0.05)


@pytest.mark.slow
def test_forgetting_a_namespace_reaches_the_weights_that_it_shared(tmp_path: Path):
    options = {"embedder": "hashing", "learn": "inline", "ranking": Ranking(policy_scope="shared")}
    with CascadeMemory(tmp_path / "both", **options) as memory, CascadeMemory(tmp_path / "one", **options) as innocent:
        _live(memory, "kept", 60)
        with (tmp_path / "kept.jsonl").open("w") as file:
            memory.data.export(file, progress=False)
        _live(memory, "leaves", 60, seed=1)
        with_both = _weights(memory, "newcomer")
        memory.acting(namespace="leaves").forget(everything=True)
        innocent.data.import_(tmp_path / "kept.jsonl", progress=False)
        for namespace in ("kept", "newcomer"):
            np.testing.assert_allclose(_weights(memory, namespace), _weights(innocent, namespace), atol=1e-6)
        assert np.abs(with_both - _weights(memory, "newcomer")).max() > 1e-3


def test_a_ranker_without_weights_has_nothing_to_share():
    for ranker in ("similarity", "random", similarity()):
        with pytest.raises(InvalidInput, match="share"):
            CascadeMemory(embedder="hashing", ranker=ranker, ranking=Ranking(policy_scope="shared"))
    with pytest.raises(InvalidInput, match="policy_scope"):
        CascadeMemory(embedder="hashing", ranking=Ranking(policy_scope="everything"))  # type: ignore[arg-type]
