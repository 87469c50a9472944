"""Makes methods of an adapter from those of the engine behind it, with the same parameters and the same documentation."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.memory.threads import in_reward_thread

P = ParamSpec("P")
T = TypeVar("T")


def of_engine(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that calls this method of the engine."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return verb(self.engine, *args, **options)

    return call


def after_runs(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that waits until all ended runs are processed, and then calls this method of the engine."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        self._drain()
        return verb(self.engine, *args, **options)

    return call


def awaited_after_runs(
    verb: Callable[Concatenate[Engine, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that waits until all ended runs are processed, and then calls this method of the engine."""

    @functools.wraps(verb)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        await in_reward_thread(self._drain)
        return await verb(self.engine, *args, **options)

    return call


def awaited_with_own_k(
    verb: Callable[Concatenate[Engine, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that calls this method of the engine with the adapter's ``k``, unless the caller gives one."""

    @functools.wraps(verb)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        if options.get("k") is None:
            options["k"] = self._own_k
        return await verb(self.engine, *args, **options)

    return call


def with_own_k(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that calls this method of the engine with the adapter's ``k``, unless the caller gives one."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        if options.get("k") is None:
            options["k"] = self._own_k
        return verb(self.engine, *args, **options)

    return call
