"""Plays one run: a stream with an agent that listens, and a memory that warns it in the way of the run's arm."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any

from cascade_memory import CascadeMemory, FailureWarning, Retention, Trajectory
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.bench.plan import ALONE_REUSE, Run
from cascade_memory.evaluation.bench.rows import stream_of
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.warned.book import Book
from cascade_memory.evaluation.warned.listening import NEVER, Act, Ask, Listener, Told
from cascade_memory.evaluation.warned.plan import ARMS, Arm, heeds_of
from cascade_memory.evaluation.warned.stages import WarnedStage, warned_stage
from cascade_memory.memory import Memory
from cascade_memory.ports import Embedder


def memory_of(arm: Arm, embedder: Embedder) -> Memory:
    """Create the memory of an arm, in RAM.

    The memory keeps warnings only if the arm shows them. If the arm shows failures among the cases, the memory keeps failures
    as cases.
    """
    retain_at = 0.0 if arm.among_cases else 1.0
    warnings = arm.shown > 0 or arm.at_the_action
    return CascadeMemory(
        embedder=embedder, learn="inline", deadline=None, warnings=warnings, retention=Retention(retain_at=retain_at)
    )


def listener_of(
    arm: Arm, memory: Memory, book: Book, query: str, episode_id: str, embedder: Embedder, *, seed: int, heeds: str = NEVER
) -> Listener:
    """Return the listener of an agent that begins a task.

    At the start the agent is shown the nearest warnings. As in ``memory.warnings.check``, a warning is left out if its action
    has worked on a task that is clearly more similar to this one than the warning's own task. A check also compares places (the
    arguments of a call except those in which the mistake lies, see ``places`` in the folder of warnings). This cannot be done
    here, since at the start there is no call yet.
    """
    found = memory.warnings.all(near=query) if arm.shown else []
    active = [one for one in found if one.state == "active"]
    task = embedder.embed([query])[0]
    sieved = (one for one in active if not book.is_contradicted(one, task, embedder.embed([one.query])[0]))
    at_the_start = [_told(one, book) for one in islice(sieved, arm.shown)]
    ask = _asking(memory, book, episode_id) if arm.at_the_action else None
    return Listener(at_the_start, ask, remembered=arm.remembered, seed=seed, heeds=heeds)


def _asking(memory: Memory, book: Book, episode_id: str) -> Ask:
    def ask(act: Act) -> Told | None:
        if act.tool is None:
            advice = memory.warnings.check(episode_id, act.action, done=act.done)
        else:
            advice = memory.warnings.check(episode_id, tool=act.tool, arguments=act.arguments, done=act.done)
        return None if advice is None else _told(advice.warning, book)

    return ask


def _told(warning: FailureWarning, book: Book) -> Told:
    return Told(warning.query, warning.action, warning.advice or warning.instead, partial(book.is_meant, warning))


def play(run: Run, folders: Folders) -> dict[str, Any]:
    """Play a run and return its row; ``method`` is the arm. Except for the times, every play of a run gives the same row.

    ``success``, ``blamed``, ``repeated``, ``again`` and ``alone`` have a character per task, in the order of play: whether the
    task was solved, whether a step of the failed attempt is blamed, whether the blamed step was a known mistake when the task
    began, whether any known mistake was made again, and whether the agent knows the solution without a case. ``heeded``,
    ``refused`` and ``steps`` count for each task the warnings that the agent heeded, the actions that the world refused, and
    all actions. ``heeds`` says whether the agent does, as its last resort, an action that it was warned of. ``insisted`` has a
    character per task: whether the agent did so there.
    """
    heeds = heeds_of(run.options)
    arm = ARMS.get(run.method)
    if arm is None:
        raise InvalidInput(f"there is no arm {run.method!r}; there are {', '.join(ARMS)}")
    stage = warned_stage(run, folders)
    memory = memory_of(arm, stage.embedder)
    began = time.perf_counter()
    try:
        book = Book()
        ends = [_take(run, stage, memory, book, place, heeds) for place in range(len(stage.queries))]
        if failures := memory.health().failures:
            raise CascadeError(f"{run.method!r} was not measured, since the memory failed during the run: {dict(failures)}")
    finally:
        memory.close()
        stage.agent.close()
    return {
        **asdict(run),
        "declared": {"alone": ALONE_REUSE},
        "arm": asdict(arm),
        "heeds": heeds,
        "stream": stream_of(stage.queries),
        "embedder": stage.embedder.identity,
        "n": len(ends),
        "seconds": time.perf_counter() - began,
        "success": _text(end.success for end in ends),
        "blamed": _text(end.blamed for end in ends),
        "repeated": _text(end.repeated for end in ends),
        "again": _text(end.again for end in ends),
        "alone": _text(stage.alone),
        "insisted": _text(end.insisted for end in ends),
        "heeded": [end.heeded for end in ends],
        "refused": [end.refused for end in ends],
        "steps": [end.steps for end in ends],
        "known": len(book.known),
    }


@dataclass(frozen=True, slots=True)
class _End:
    """How one task ended."""

    success: bool
    blamed: bool
    repeated: bool
    again: bool
    insisted: bool
    heeded: int
    refused: int
    steps: int


def _take(run: Run, stage: WarnedStage, memory: Memory, book: Book, place: int, heeds: str) -> _End:
    query, arm = stage.queries[place], ARMS[run.method]
    recall = memory.recall(query, episode_id=f"task {place}")
    seed = 1_000_003 * run.seed + place
    listener = listener_of(arm, memory, book, query, recall.episode_id, stage.embedder, seed=seed, heeds=heeds)
    attempt = stage.agent.attempt(place, recall.cases, listener)
    done = attempt.answer if isinstance(attempt.answer, Trajectory) else None
    again = book.is_made_again(done)
    found = book.note(query, stage.embedder.embed([query])[0], done, success=attempt.success)
    failed = None if attempt.success else {"solved": False}
    memory.reward(recall.episode_id, attempt.success, solution=done, metadata=failed)
    return _End(
        attempt.success,
        blamed=found is not None,
        repeated=found is not None and found.known,
        again=again,
        insisted=listener.insisted is not None,
        heeded=listener.heeded,
        refused=0 if done is None else sum(step.failed for step in done.steps),
        steps=attempt.steps,
    )


def _text(values: Iterable[bool]) -> str:
    return "".join("01"[bool(value)] for value in values)
