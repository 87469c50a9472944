"""Labels in hindsight: how far each candidate agrees with the verified solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from inside import engine_of

from cascade_memory import CascadeMemory, Ranking, Step, Trajectory
from cascade_memory.cycle.reward import hindsight
from cascade_memory.domain.digests import digest
from cascade_memory.encoders.matchers import CarefulMatcher, ExactMatcher


def test_hindsight_without_texts_is_the_same(tmp_path: Path):
    rng = np.random.default_rng(3)

    def some() -> object:
        text = ["Paris", " paris\n", "Lyon", "PARIS  now", "ﬁne", "fine"][rng.integers(6)]
        return text if rng.random() < 0.6 else Trajectory([Step(action=text, observation=str(rng.integers(9)))])

    class WithTexts(ExactMatcher):
        def agreement(self, verified, stored):
            return super().agreement(verified, stored)

    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="off", ranking=Ranking(candidates=40)) as memory:
        for i in range(60):
            memory.add(f"task {i}", some())
        ledger = engine_of(memory).parts.ledger
        unknown = 0
        for i in range(40):
            episode = memory.recall(f"task {i}", k=1)
            if i % 10 == 9:
                memory.forget(memory.cases.search(f"task {i}").cases[0].id)
            unsettled = ledger.unsettled(episode.episode_id, None)
            verified = some()
            keys, texts = (
                hindsight(unsettled, verified, solution_key=digest(matcher.key(verified)), ledger=ledger, matcher=matcher)
                for matcher in (CarefulMatcher(one, lambda *_: None) for one in (ExactMatcher(), WithTexts()))
            )
            assert keys.keys() == texts.keys()
            for recall in keys:
                np.testing.assert_array_equal(keys[recall], texts[recall])
                unknown += int(np.isnan(keys[recall]).sum())
        assert unknown > 40
