"""Whatever a source has done among honest ones: once it is undone, all is as if it had never been there."""

from __future__ import annotations

import contextlib
import random
from typing import Any, NamedTuple

import pytest
from inside import verb_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import CascadeError

BAD = "mallory"
# No corrections by honest ones: these hide what is wrong then, and that may be a case of the source.
HONEST_DO = ("recall", "recall", "reward", "reward", "finish", "add")
BAD_DOES = ("reward", "reward", "correct", "confirm", "add", "hide", "unhide", "pin", "correct a case", "quarantine")


class Deed(NamedTuple):
    """One call of somebody; ``at`` says on which episode, or on which case."""

    actor: str
    does: str
    task: str
    solution: str
    value: float
    at: int
    source: str
    channel: str


def deeds(seed: int) -> list[Deed]:
    draws = random.Random(seed)
    made = list[Deed]()
    for _ in range(draws.randrange(4, 26)):
        actor = draws.choice(["ann", "bob", BAD, BAD])
        made.append(
            Deed(
                actor=actor,
                does=draws.choice(BAD_DOES if actor == BAD else HONEST_DO),
                task=f"task {draws.randrange(4)} of the desk",
                solution=f"solution {draws.randrange(3)}",
                value=draws.choice([0.0, 0.3, 0.6, 0.9, 1.0]),
                at=draws.randrange(100),
                source=draws.choice(["host", "human", "user"]),
                channel=draws.choice(["python", "mcp"]),
            )
        )
    return made


def do(memory: CascadeMemory, deed: Deed, episodes: list[str], number: int) -> None:
    by = {"actor": deed.actor, "channel": deed.channel}
    honest = sorted((one for one in memory.cases.all() if one.actor != BAD), key=lambda one: (one.query, str(one.solution)))
    case = honest[deed.at % len(honest)].id if honest else None
    episode = episodes[deed.at % len(episodes)] if episodes else None
    if deed.does == "recall":
        episodes.append(memory.acting(**by).recall(deed.task, episode_id=f"e{number}").episode_id)
    elif deed.does == "add":
        memory.acting(**by).add(deed.task, deed.solution + (", and tell me" if deed.actor == BAD else ""))
    elif deed.does == "quarantine":
        memory.acting(actor=BAD).sources.quarantine("bob")
    elif case is not None and deed.does == "correct a case":
        memory.acting(**by).review.correct(case, f"{deed.solution}, and tell me")
    elif case is not None and deed.does in ("hide", "unhide", "pin"):
        verb_of(memory.acting(actor=BAD), deed.does)(case)
    elif episode is not None and deed.does == "reward":
        memory.acting(**by).reward(episode, deed.value, solution=deed.solution, source=deed.source, overwrite=True)
    elif episode is not None and deed.does == "correct":
        memory.acting(**by).review.correct(episode, deed.solution)
    elif episode is not None and deed.does == "finish":
        memory.episodes.finish(episode, solution=deed.solution)
    elif episode is not None and deed.does == "confirm":
        memory.acting(**by).review.confirm(episode, seen=memory.episodes.get(episode).fingerprint)


def lived(seed: int, *, poisoned: bool) -> Any:
    """Return what is left, and which honest calls were refused: these are others where the source had a say."""
    episodes, refused = list[str](), list[int]()
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(retain_at=0.5)) as memory:
        for number, deed in enumerate(deeds(seed)):
            if deed.actor != BAD:
                try:
                    do(memory, deed, episodes, number)
                except CascadeError:
                    refused.append(number)
            elif poisoned:
                with contextlib.suppress(CascadeError):
                    do(memory, deed, episodes, number)
        if poisoned:
            would = memory.forget(by_actor=BAD, dry_run=True)
            assert memory.forget(by_actor=BAD) == would
        assert all(check.ok for check in memory.data.examine())
        # Not their trust: other cases were shown to honest ones meanwhile.
        cases = [
            (one.query, one.solution, one.actor, one.source, one.hidden, one.pinned, one.copies) for one in memory.cases.all()
        ]
        ended = [(one.status, one.reward, one.solution, one.source) for one in map(memory.episodes.get, episodes)]
        waiting = sorted(one.id for one in memory.review.to_judge())
        return refused, (sorted(cases, key=repr), ended, waiting, memory.stats().rewards)


def same(seed: int) -> bool | None:
    (refused, was), (others, never) = lived(seed, poisoned=True), lived(seed, poisoned=False)
    if refused != others:
        return None
    assert was == never, seed
    return True


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_all_is_as_if_it_had_never_been_there(part: int):
    assert sum(same(seed) is True for seed in range(10 * part, 10 * part + 10)) >= 6


@pytest.mark.long
def test_so_it_is_in_many_more_lives():
    assert sum(same(seed) is True for seed in range(1000, 1500)) >= 300
