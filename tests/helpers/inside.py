"""What lies behind a memory: the one place where tests reach for it."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.capabilities import CAPABILITIES
from cascade_memory.cycle.recall import recall
from cascade_memory.domain.actions import check_known_actor
from cascade_memory.encoders.light import FEATURES
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.memory import memory as memory_module
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.cases import Cases
from cascade_memory.memory.data import Data
from cascade_memory.memory.episodes import Episodes
from cascade_memory.ports.encoders import Query
from cascade_memory.ports.policy import Slate
from cascade_memory.runs.adapter import Adapter
from cascade_memory.testing import ledger_in_ram


def take_names_of_before(patch: pytest.MonkeyPatch) -> None:
    """Take every name that a ledger may hold as an actor's, as memories once did."""
    patch.setattr(memory_module, "check_actor", check_known_actor)


def engine_of(memory: Bound | Adapter) -> Engine:
    """Return the engine behind a memory, or behind a framework's door to one."""
    behind = memory.engine if isinstance(memory, Adapter) else memory
    return behind._engine


def parts_of_ledger() -> dict[str, type]:
    """Return the classes of the parts that a ledger hands out, by the attribute."""
    ledger = ledger_in_ram()
    kinds = {name: type(part) for name, part in vars(ledger).items() if type(part).__name__.startswith("SQL")}
    ledger.close()
    return kinds


_NOUNS: dict[str, type[Bound]] = {
    **{"cases": Cases, "episodes": Episodes, "data": Data},
    **{name: getattr(CascadeMemory, name).verbs for name in CAPABILITIES},
}


def verbs() -> dict[str, Any]:
    """Return the verbs of a memory and of its nouns, such as "recall" and "cases.pin", as functions of what they belong to."""
    found: dict[str, Any] = {}
    for noun, place in {"": CascadeMemory, **_NOUNS}.items():
        for name, verb in inspect.getmembers(place, inspect.isfunction):
            if not name.startswith("_"):
                found[f"{noun}.{name}" if noun else name] = verb
    return found


def verb_of(memory: CascadeMemory | Adapter, name: str) -> Any:
    """Return a verb by its name, such as "cases.pin"; "pin" is that of the first noun that has it."""
    if "." in name or hasattr(type(memory), name):
        return operator.attrgetter(name)(memory)
    return next(getattr(getattr(memory, noun), name) for noun, place in _NOUNS.items() if hasattr(place, name))


def state_of(memory: Bound | Adapter, namespace: str = "default") -> NamespaceState:
    """Return what the engine knows of a namespace."""
    return engine_of(memory).namespace_state(namespace)


def predictions_of(memory: Bound | Adapter, namespace: str, query: str) -> np.ndarray:
    """Return what the ranker predicts for each case that a recall would find: (utility, value). Nothing changes."""
    engine, state = engine_of(memory), state_of(memory, namespace)
    asked = Query(text=query, vector=engine.embed([query])[0])
    found = recall(asked, index=state.index, ledger=engine.parts.ledger, size=32)
    encoder, policy = state.learner.now
    features = encoder.encode(asked, found.candidates, found.similarity)
    slate = Slate(features=features, similarity=found.similarity, groups=found.candidates.groups, query=asked.vector)
    choice = policy.select(slate, 1, abstain=False, seed=0)
    return np.stack([choice.utility, choice.value])


def stored_signal(memory: Bound | Adapter, name: str) -> dict[str, float]:
    """Return a signal of each candidate of the last recall, as it is stored, by the candidate's solution."""
    ledger = engine_of(memory).parts.ledger
    with ledger.connections.read() as connection:
        keys, features = connection.execute("SELECT candidates, features FROM recall ORDER BY key DESC LIMIT 1").fetchone()
    numbers = np.frombuffer(keys, "<i8").tolist()
    table = np.frombuffer(features, "<f4").reshape(len(numbers), len(FEATURES))
    stored = ledger.cases.by_key(numbers)
    return {str(stored[key].solution): float(row[FEATURES.index(name)]) for key, row in zip(numbers, table, strict=True)}
