"""The arms: how a memory lets an agent know of failures."""

from __future__ import annotations

from functools import partial
from itertools import islice

from cascade_memory import CascadeMemory, FailureWarning
from cascade_memory.evaluation.warned.book import Book
from cascade_memory.evaluation.warned.listening import NEVER, Act, Ask, Listener, Told
from cascade_memory.evaluation.warned.plan import Arm
from cascade_memory.memory import Memory
from cascade_memory.ports import Embedder


def memory_of(arm: Arm, embedder: Embedder) -> Memory:
    """Create the memory of an arm, in RAM. Only the arms that show warnings have any; one has the failures as cases."""
    retain_at = 0.0 if arm.among_cases else 1.0
    warnings = arm.shown > 0 or arm.at_the_action
    return CascadeMemory(embedder=embedder, learn="inline", deadline=None, warnings=warnings, retain_at=retain_at)


def listener_of(
    arm: Arm, memory: Memory, book: Book, query: str, episode_id: str, embedder: Embedder, *, seed: int, heeds: str = NEVER
) -> Listener:
    """Return the ear of an agent that begins a task.

    At the start it is shown the nearest warnings, after the sieve of a check: not those at what has worked on a task that is
    clearly more similar. The rule of places cannot be part of this sieve: a call names its place, and at the start there is no
    call yet.
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
