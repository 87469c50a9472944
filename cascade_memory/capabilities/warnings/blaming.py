"""Finds what a judgement means for warnings: at which step a run failed, and whether known mistakes were repeated."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from cascade_memory.capabilities.warnings.blame import Solved, blame_of_the_world, blamed_step, came_again, why_nobody
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.capabilities.warnings.rows import WarningRows
from cascade_memory.capabilities.warnings.shelf import WarningShelf
from cascade_memory.domain.case import Case
from cascade_memory.domain.episode import FAILED_BELOW, TRUSTED_SOURCES
from cascade_memory.domain.failure_warning import WarningOptions
from cascade_memory.domain.records import Unsettled
from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.trust import LEVELS
from cascade_memory.engine.request import Judgement
from cascade_memory.engine.settling import Settles

_NEAR = 16  # solved cases with which a failed run is compared
_BLAMED = 8  # failures of a warning that say what the mistake is: one message may have named a word, and another one none
_ALIKE = 0.3  # the least cosine of their tasks


class Desk(Protocol):
    """The part of a ``WarningDesk`` that blaming needs."""

    options: WarningOptions | None
    unblamed: Counter[str]
    rows: WarningRows

    def shelf(self, namespace: str) -> WarningShelf | None:
        """Return the warnings of a namespace."""
        ...

    def happens_again(self, namespace: str, found: Blame, episode_id: str) -> bool:
        """Note an error of the world; return whether it is known from enough episodes."""
        ...

    def note_blamed(self, namespace: str) -> None:
        """Remember that a failure was stored."""
        ...


def blame_of(
    engine: Settles, desk: Desk, judgement: Judgement, episode: Unsettled, solution: Solution | None, *, unseen: bool
) -> Blame | None:
    """Return the step to blame; None if there is none, or if the verdict must not teach.

    An error in this function does not keep the reward from being recorded. ``unseen``: only the agent itself has reported what
    it did.
    """
    corrected = judgement.action is not None and judgement.action.corrects
    taken = None if judgement.action is None else judgement.action.takes_back
    if taken is not None and taken.before is not None and taken.before.retained:
        return None  # a correction comes back: its solution is the right one
    run = episode.solution if corrected else solution
    unseen = episode.agents_words if corrected else unseen
    if unseen or not isinstance(run, Trajectory):
        return None
    if judgement.source not in TRUSTED_SOURCES:
        return None
    try:
        if judgement.actor in engine.namespace_state(judgement.namespace).screen.silenced:
            return None
        near = _near(engine, judgement, episode)
        if corrected and isinstance(solution, Trajectory):  # a person says what would have been right
            near = [Solved(case=None, query=episode.query, run=solution), *near]
        # What an older version has stored may hold a secret: in this run, which is cleaned before its words are taken, or in
        # what worked.
        cleaned = judgement.record.solution(run) if corrected else run
        found = _blamed(desk, judgement, episode.query, cleaned, near) if isinstance(cleaned, Trajectory) else None
        if found is not None:
            clean = judgement.record.text
            found = dataclasses.replace(
                found, action=clean(found.action), happened=clean(found.happened), instead=clean(found.instead)
            )
    except Exception as error:  # noqa: BLE001 - see above
        engine.note_failure("blame", error)
        return None
    if found is not None:
        desk.note_blamed(judgement.namespace)
    else:
        desk.unblamed[why_nobody(run)] += 1
    return found


def _blamed(desk: Desk, judgement: Judgement, task: str, run: Trajectory, near: Sequence[Solved]) -> Blame | None:
    matters = None if desk.options is None else desk.options.matters
    found = blamed_step(task, run, near, matters)
    if found is not None:
        return found
    found = blame_of_the_world(task, run, near, matters)
    again = found is not None and desk.happens_again(judgement.namespace, found, judgement.episode_id)
    return found if again else None


def _near(engine: Settles, judgement: Judgement, episode: Unsettled) -> list[Solved]:
    """Return the stored runs that solved the most similar tasks, without those whose actors' cases must not be shown."""
    if not len(episode.vector):
        return []
    state = engine.namespace_state(judgement.namespace)
    keys, cosines = state.index.nearest(episode.vector, _NEAR)
    stored = engine.parts.ledger.cases.by_key(keys[cosines >= _ALIKE].tolist())
    cases = [stored[key] for key in keys.tolist() if key in stored and _is_run(stored[key], judgement.episode_id)]
    authors = [None if case.source == "human" or case.pinned else case.actor for case in cases]
    if any(authors):
        held = state.screen.held(authors, np.arange(len(cases)), judgement.actor, judgement.episode_id)
        cases = [case for case, is_held in zip(cases, held, strict=True) if not is_held]
    enough = min(LEVELS[judgement.source], LEVELS["host"])  # a person's verdict may be explained by what a host has added
    return [
        Solved(case=case.id, query=case.query, run=case.solution, trusted=case.trust >= enough)
        for case in cases
        if isinstance(case.solution, Trajectory)
    ]


def _is_run(case: Case, episode_id: str) -> bool:
    solved = case.metadata.get("solved") is not False and not case.hidden
    return solved and isinstance(case.solution, Trajectory) and case.episode_id != episode_id


def repeats_of(
    engine: Settles, desk: Desk, judgement: Judgement, episode: Unsettled, solution: Solution | None
) -> Mapping[str, bool]:
    """Return, for each warning that was checked in an episode, whether its mistake was repeated."""
    run = episode.solution if judgement.action is not None and judgement.action.corrects else solution
    try:
        shelf = desk.shelf(judgement.namespace)
        if shelf is None:
            return {}
        shelf.refresh()
        checked = [shelf.group(one.warning) for one in desk.rows.checks(judgement.episode_id)]
        if not isinstance(run, Trajectory):  # what was done is unknown; how it ended is not
            return {group.id: judgement.value < FAILED_BELOW for group in checked if group is not None}
        return {
            group.id: any(came_again(one.blame, run) for one in group.failures[-_BLAMED:])
            for group in checked
            if group is not None
        }
    except Exception as error:  # noqa: BLE001 - as above
        engine.note_failure("blame", error)
        return {}
