"""Blocks (``with`` statements) that always give back what they took, even if an interrupt comes while they give it back.

A block here takes a turn or a connection. Giving it back takes several steps, and an interrupt may come during each of them,
even a second interrupt after a first one. ``domain.interruptible`` then closes the block, but cannot know which steps were
done.

So the end of a block is observed from outside. The frame with the ``with`` statement has the block on its stack of values, and
drops it when the statement ends, in whatever way. No variable of any frame refers to the block, and so no traceback keeps it.
When the block is dropped, its weak reference puts itself into a queue. This happens in C, where nothing is interrupted. A
thread, which gets no signals, then gives back what is still held. A block that ended as usual removes its weak reference
before, and so does not wake the thread.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from cascade_memory.domain.daemon import Daemon
from cascade_memory.domain.interruptible import Block

C = TypeVar("C")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Held(Generic[T_co]):
    """Base class of what a block takes at its beginning, and gives back at its end: a turn (see ``turns``) or a connection."""

    def take(self, block: Sign) -> T_co:
        """Take what the block needs, and return it; ``block`` says whether the block goes on."""
        raise NotImplementedError

    def give_back(self) -> None:
        """Give back, at the end of the block, what was taken."""
        self.end()

    def end(self) -> None:
        """Give back what is still held. This is called, perhaps again, if taking it or giving it back was interrupted."""
        raise NotImplementedError


class Sign(weakref.ref["functools.partial[Any]"]):
    """A weak reference to a block (a ``with`` statement that holds a turn or a connection)."""

    __slots__ = ("held",)
    held: Held[Any]

    @property
    def is_over(self) -> bool:
        """Say whether the block has ended."""
        return self() is None


_signs: dict[int, Sign] = {}  # of the blocks that go on; and of those that were interrupted, until they are ended
_over: queue.SimpleQueue[Sign] = queue.SimpleQueue()
_ender: Daemon | None = None
_starting = threading.Lock()


def block_of(held: Held[T]) -> AbstractContextManager[T]:
    """Return a block that takes ``held`` and always gives it back; call this in the ``with`` statement itself."""
    if _ender is None or _ender.is_lost:
        _start()
    signs: list[Sign] = []
    leave = functools.partial(_end, held, signs)
    block: Any = Block()
    block.__enter__, block.__exit__ = functools.partial(_begin, Sign(leave, _over.put), held, signs), leave
    try:
        return block
    finally:
        del leave, block  # somebody may keep this frame, and with it its variables


def closed_surely(opens: Callable[[], C], close: Callable[[C], object]) -> AbstractContextManager[C]:
    """Return a block that calls ``opens``, yields the result, and closes this for certain with ``close``."""
    return block_of(_Opened(opens, close))


class _Opened(Held[C]):
    """Something that is open during one block."""

    def __init__(self, opens: Callable[[], C], close: Callable[[C], object]) -> None:
        self._opens, self._close = opens, close
        self._opened: list[C] = []

    def take(self, block: Sign) -> C:
        del block
        self._opened.extend(map(_call, (self._opens,)))  # opened and noted in one step
        return self._opened[0]

    def end(self) -> None:
        for one in self._opened:
            self._close(one)


def _call(opens: Callable[[], C]) -> C:
    return opens()


def _begin(sign: Sign, held: Held[Any], signs: list[Sign]) -> Any:
    sign.held = held
    _signs[id(sign)] = sign
    signs.append(sign)
    try:
        return held.take(sign)
    except BaseException:
        held.end()
        _forget(signs)
        raise


def _end(held: Held[Any], signs: list[Sign], *ended: Any) -> None:
    del ended  # how the block ended, which changes nothing
    try:
        held.give_back()
    except BaseException:
        held.end()
        _forget(signs)
        raise
    _forget(signs)


def _forget(signs: list[Sign]) -> None:
    """Remove the weak references of a block that has ended, so that its end does not wake the thread that gives things back."""
    for sign in signs:
        _signs.pop(id(sign), None)
    signs.clear()


def _start() -> None:
    global _ender  # noqa: PLW0603 - one for all blocks of the process
    with _starting:
        if _ender is None or _ender.is_lost:
            _ender = Daemon(functools.partial(_end_what_is_over, _over), "cascade-memory-ends")
            _ender.start()


def _end_what_is_over(over: queue.SimpleQueue[Sign]) -> None:
    while True:
        try:
            for sign in list(_signs.values()):
                if sign.is_over:
                    with contextlib.suppress(Exception):
                        sign.held.end()
                    _signs.pop(id(sign), None)
            over.get()
        except BaseException:  # noqa: BLE001 - somebody set an exception into this very thread: look again
            continue


def _after_fork() -> None:
    """Forget, in a process made by ``fork()``, what the threads of its parent held: the child has none of these threads."""
    global _over, _ender, _starting
    _signs.clear()
    _over, _ender, _starting = queue.SimpleQueue(), None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
