"""Which earlier failures make an action a mistake where it is about to be done."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.consequences import SoFar, may_fail_again
from cascade_memory.cycle.places import Call, stands
from cascade_memory.domain.failure_warning import Failure
from cascade_memory.domain.trajectory import Step, Trajectory, capped
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.parts import Parts
from cascade_memory.engine.warning_request import StepsSoFar
from cascade_memory.engine.warning_shelf import WarningShelf

_CONTRADICTING = 16  # solved cases that are asked whether an action works
_EXPLAINED = 16  # failures of which the runs are read, to see what was done there before; what failed more often, counts


class HasCases(Protocol):
    """What is needed of an engine."""

    parts: Parts

    def namespace_state(self, namespace: str) -> NamespaceState:
        """Return the state of a namespace."""
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
    """Yield the failures that count, in their order. Each is looked at when it is asked for: mostly the first is enough.

    Left out are failures at what has worked in the same place, or on tasks more like the present one; and those that may have
    come of how things stood in their run, if they stand otherwise in this one. A message that names a word of the action says
    itself what was wrong. How things stand does not matter for the warnings that the agent was ``told`` already.
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
    """Return steps as they would be stored: with placeholders instead of secrets. What was observed does not matter here."""
    actions = [dataclasses.replace(step, observation="", thought="") for step in done if step.action]
    stored = engine.parts.door.record(episode_id).solution(capped(Trajectory(actions))) if actions else None
    return stored.steps if isinstance(stored, Trajectory) else ()
