"""The names of models in a PostgreSQL database: stamped, filtered by and counted as in a folder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from inside import engine_of

from cascade_memory import CascadeMemory


def test_models_are_stamped_and_counted(new_database: Callable[[], str]):
    with CascadeMemory(new_database(), embedder="hashing", learn="inline") as memory:
        ended = memory.recall("heat some mug").episode_id
        memory.models.answered(ended, "small")
        memory.end(ended, solution="oven")
        memory.reward(ended, 1.0)
        rewarded = memory.recall("cool some mug").episode_id
        memory.models.answered(rewarded, "large")
        memory.reward(rewarded, 0.0)
        assert [(one.model, one.episodes, one.cases) for one in memory.models.all()] == [("small", 1, 1), ("large", 1, 0)]
        assert [one.solution for one in memory.cases.all(where={"model": "small"})] == ["oven"]
        engine = engine_of(memory)
        keys = np.array(engine.parts.ledger.cases.keys_of([one.id for one in memory.cases.all()]), np.int64)
        for metadata, share in (({"model": "small"}, 1.0), ({"model": "small", "floor": True}, 0.5), ({"floor": "small"}, 0.0)):
            assert engine.parts.ledger.cases.alike(keys, engine.namespace_id("default"), metadata).tolist() == [share]
        assert memory.recall("heat some mug", metadata={"model": "small"}).error is None
        assert "by model    small: 1 episode" in str(memory.report())
