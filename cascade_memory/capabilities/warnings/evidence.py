"""Finds the earlier failures that make an action a mistake in the place where it is about to be done."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.warnings.consequences import SoFar, may_fail_again
from cascade_memory.capabilities.warnings.places import Call, stands
from cascade_memory.capabilities.warnings.records import Failure, StepsSoFar
from cascade_memory.capabilities.warnings.shelf import WarningShelf
from cascade_memory.domain.trajectory import Step, Trajectory, capped
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.parts import Parts
from cascade_memory.engine.settling import Settles

_CONTRADICTING = 16  # solved cases that are asked whether an action works
_EXPLAINED = 16  # failures of which the runs are read, to see what was done there before; what failed more often, counts


class HasCases(Protocol):
    """The part of an engine that is needed to find the failures."""

    parts: Parts

    def namespace_state(self, namespace: str) -> NamespaceState:
        """Return the state of a namespace."""
        ...


class Serves(HasCases, Settles, Protocol):
    """The part of an engine that a ``WarningDesk`` needs."""

    def hear(self) -> None:
        """Apply what other processes have written to the log."""
        ...

    def oldest(self) -> float:
        """Return the time limit from the ttl: what is older is not shown any more."""
        ...


def those_that_count(
    failures: Sequence[Failure],
    engine: HasCases,
    shelf: WarningShelf,
    step: Step,
    vector: NDArray[np.float32],
    *,
    done: StepsSoFar | None,
    told: Collection[str],
    episode_id: str,
) -> Iterator[Failure]:
    """Yield those of ``failures`` that make the action ``step`` a mistake, in their order.

    Each failure is examined on demand, since the first is usually enough. A failure is left out if the same action has worked
    in the same place (see ``places``), or on a task more similar to the present one. It is also left out if it may have
    depended on the state of things in its run, and this state is different now. That state is not compared in two cases: if the
    error message names a word of the action, and so says what was wrong, and for warnings that the agent was ``told`` already.
    """
    if not failures:
        return

    @functools.cache
    def so_far() -> SoFar | None:
        steps = None if done is None else done()
        return None if steps is None else SoFar(_stored(steps, engine, episode_id))

    calls, now, explained = _calls_near(engine, shelf, step, vector), Call(step), 0
    for failure in failures:
        mistake = shelf.mistake(failure)
        if not stands(mistake, float(failure.vector @ vector), now, calls):
            continue
        if mistake.is_whole and failure.blame.group not in told and explained < _EXPLAINED:
            explained += 1
            if (steps := so_far()) is not None and not may_fail_again(shelf.before(failure), step, steps):
                continue
        yield failure


def _calls_near(engine: HasCases, shelf: WarningShelf, step: Step, vector: NDArray[np.float32]) -> Sequence[tuple[float, Call]]:
    """Return the calls of the same tool that the most similar solved cases have made, with the cosines of their tasks."""
    keys, cosines = engine.namespace_state(shelf.name).index.nearest(vector, _CONTRADICTING)
    stored = engine.parts.ledger.cases.by_key(keys.tolist())
    return [
        (float(cosine), Call(one))
        for key, cosine in zip(keys.tolist(), cosines, strict=True)
        if (case := stored.get(key)) is not None
        and case.metadata.get("solved") is not False
        and isinstance(case.solution, Trajectory)
        for one in case.solution.steps
        if one.tool == step.tool
    ]


def _stored(done: Sequence[Step], engine: HasCases, episode_id: str) -> Sequence[Step]:
    """Return steps as they would be stored: with placeholders instead of secrets; observations are left out."""
    actions = [dataclasses.replace(step, observation="", thought="") for step in done if step.action]
    stored = engine.parts.door.record(episode_id).solution(capped(Trajectory(actions))) if actions else None
    return stored.steps if isinstance(stored, Trajectory) else ()
