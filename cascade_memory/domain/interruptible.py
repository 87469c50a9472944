"""Blocks that end, and locks that are released, wherever an interrupt comes: Ctrl-C, a raising alarm handler, a time limit.

Python raises an interrupt after a call, at the first step of a function, or at the end of a round of a loop. So it may come
between ``lock.acquire()`` and the ``try`` that follows, or at the first step of an ``__exit__`` that is written in Python.
A generator of ``contextlib.contextmanager`` then stays in the middle of its block, with its lock and its transaction, for as
long as anybody keeps the traceback: notebooks, loggers and debuggers do.

What is written in C, such as ``with lock:`` or ``list.extend``, is never interrupted in between. Hence three rules here:

- ``with lock:`` for locks without a time limit, and ``take`` for those with one, inside the ``try`` that releases them;
- ``interruptible`` instead of ``contextmanager`` for blocks that hold something;
- the first call in a ``finally`` does what must not be left out.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Lock(Protocol):
    """A lock of ``threading``."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Acquire the lock; return False if the time is over."""
        ...


class Block:
    """What a ``with`` statement enters. The statement reads both attributes first; then it alone refers to ``__exit__``."""

    __slots__ = ("__enter__", "__exit__")


def interruptible(work: Callable[P, Generator[T, None, None]]) -> Callable[P, AbstractContextManager[T]]:
    """Do what ``contextlib.contextmanager`` does, and close the generator whenever its block is left.

    Only the ``with`` statement refers to the generator. No frame does, since tracebacks keep frames. When the block is left in
    any way, Python drops the generator, and so closes it, on the same thread. Call the decorated function in the ``with``
    statement itself.

    >>> @interruptible
    ... def block():
    ...     try:
    ...         yield "inside"
    ...     finally:
    ...         print("left")
    >>> with block() as where:
    ...     print(where)
    inside
    left
    """

    @functools.wraps(work)
    def made(*args: P.args, **options: P.kwargs) -> AbstractContextManager[T]:
        generator = work(*args, **options)
        leave: Any = functools.partial(_leave, weakref.ref(generator))
        leave.generator = generator
        block: Any = Block()
        block.__enter__, block.__exit__ = generator.__next__, leave
        try:
            return block
        finally:
            del generator, leave, block  # somebody may keep this frame: a traceback of a finalizer that ran here, a profiler

    return made


def _nothing() -> Generator[None, None, None]:
    """Stand in for a generator that is gone: the garbage collector clears weak references to it, and then closes it itself."""
    yield from ()


_ENDED: Any = _nothing()
next(_ENDED, None)


def _leave(
    held: Callable[[], Any], kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
) -> bool:
    """Go on after the ``yield``, or raise the error there; return whether the generator has dealt with the error."""
    del kind
    if error is None:
        next(held() or _ENDED, None)  # no variable holds the generator while an interrupt may come
        return False
    try:
        (held() or _ENDED).throw(error)
    except StopIteration as ended:
        return ended is not error
    except BaseException as raised:
        if raised is error or (isinstance(error, StopIteration) and raised.__cause__ is error):
            error.__traceback__ = traceback
            return False
        raise
    return False


def take(lock: Lock, held: list[bool], seconds: float | None = None) -> bool:
    """Wait for a lock, without limit if ``seconds`` is None; append to ``held`` whether it was taken, and return the same.

    Call it inside the ``try`` whose ``finally`` releases the lock if ``True in held``: it takes and notes the lock in one step.

    >>> import threading
    >>> lock, held = threading.Lock(), []
    >>> try:
    ...     take(lock, held, 1.0)
    ... finally:
    ...     if True in held:
    ...         lock.release()
    True
    """
    held.extend(map(lock.acquire, (True,), (-1 if seconds is None else seconds,)))
    return held[-1]
