"""What lies behind a memory: the one place where tests reach for it."""

from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.cycle.recall import recall
from cascade_memory.domain.actions import check_known_actor
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.memory import handle
from cascade_memory.memory.handle import Handle
from cascade_memory.ports.pair_encoder import Query
from cascade_memory.ports.policy import Slate
from cascade_memory.runs.adapter import Adapter


def take_names_of_before(patch: pytest.MonkeyPatch) -> None:
    """Take every name that a ledger may hold as an actor's, as memories once did."""
    patch.setattr(handle, "check_actor", check_known_actor)


def engine_of(memory: Handle | Adapter) -> Engine:
    """Return the engine behind a memory, or behind a framework's door to one."""
    behind = memory.engine if isinstance(memory, Adapter) else memory
    return behind._engine


def state_of(memory: Handle | Adapter, namespace: str = "default") -> NamespaceState:
    """Return what the engine knows of a namespace."""
    return engine_of(memory).namespace_state(namespace)


def predictions_of(memory: Handle | Adapter, namespace: str, query: str) -> np.ndarray:
    """Return what the ranker predicts for each case that a recall would find: (utility, value). Nothing changes."""
    engine, state = engine_of(memory), state_of(memory, namespace)
    asked = Query(text=query, vector=engine.embed([query])[0])
    found = recall(asked, index=state.index, ledger=engine.parts.ledger, size=32)
    encoder, policy = state.learner.now
    features = encoder.encode(asked, found.candidates, found.similarity)
    slate = Slate(features=features, similarity=found.similarity, groups=found.candidates.groups, query=asked.vector)
    choice = policy.select(slate, 1, abstain=False, seed=0)
    return np.stack([choice.utility, choice.value])
