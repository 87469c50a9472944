"""Asks ``reward_fn``, a plain or an async function, from a thread or from an event loop."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from cascade_memory.domain.episode import Episode, check_source
from cascade_memory.domain.validation import check_callable
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.threads import in_reward_thread

Verdict: TypeAlias = "float | bool | None"
RewardFn: TypeAlias = "Callable[[Episode], Verdict | Awaitable[Verdict]]"
LOOKS_SOLVED = 0.5  # a reward above this looks like a success
_BLAMED = "_cascade_reward_fn"


def check_reward_fn(reward_fn: object) -> None:
    """Refuse anything but a function of one episode, or None.

    >>> check_reward_fn(lambda episode, answer: 1.0)
    Traceback (most recent call last):
    ...
    cascade_memory.errors.InvalidInput: reward_fn must be a function of one argument, the episode
    """
    check_callable(reward_fn, "reward_fn")
    if not callable(reward_fn):
        return
    check_source(source_of(cast("RewardFn", reward_fn)))
    try:
        signature = inspect.signature(reward_fn)
    except (TypeError, ValueError):  # some functions that are written in C have none
        return
    try:
        signature.bind(None)
    except TypeError:
        raise InvalidInput("reward_fn must be a function of one argument, the episode") from None


def source_of(reward_fn: RewardFn) -> str:
    """Return the source of the verdicts: the function's attribute ``source``, by default "host"."""
    return str(getattr(reward_fn, "source", "host"))


def blame(error: Exception) -> None:
    """Mark an exception as caused by ``reward_fn``, not by the memory."""
    with contextlib.suppress(AttributeError):  # an exception may have no room for it
        error.__dict__[_BLAMED] = True


def step_of(error: Exception, step: str) -> str:
    """Return the name under which a failure is counted: "reward_fn" if ``blame`` has marked the error, otherwise ``step``.

    >>> error = ValueError()
    >>> blame(error)
    >>> step_of(error, "callback"), step_of(KeyError(), "callback")
    ('reward_fn', 'callback')
    """
    return "reward_fn" if getattr(error, "__dict__", {}).get(_BLAMED) else step


def ask(reward_fn: RewardFn, episode: Episode) -> Verdict:
    """Return the verdict; an async function runs in its own thread, since the current one may have a running loop.

    >>> ask(lambda episode: episode.answer == "42", Episode(id="e", namespace="n", query="q", status="open", solution="42"))
    True
    """
    found = reward_fn(episode)
    return _finished(found) if inspect.isawaitable(found) else cast("Verdict", found)


async def aask(reward_fn: RewardFn, episode: Episode) -> Verdict:
    """Return the verdict without blocking the event loop, even if ``reward_fn`` is a slow plain function."""
    if inspect.iscoroutinefunction(reward_fn) or inspect.iscoroutinefunction(getattr(reward_fn, "__call__", None)):  # noqa: B004
        return await cast("Awaitable[Verdict]", reward_fn(episode))
    return await in_reward_thread(lambda: ask(reward_fn, episode))


def _finished(awaitable: Awaitable[Verdict]) -> Verdict:
    import asyncio  # seldom needed, and slow to load

    outcome: list[tuple[Verdict, BaseException | None]] = []

    async def wait() -> Verdict:
        return await awaitable

    def run() -> None:
        try:
            outcome.append((asyncio.run(wait()), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            outcome.append((None, error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="cascade-memory-reward")
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value
