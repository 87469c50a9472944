"""What this process has open. It opens each place once, and all handles on it share the engine."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from dataclasses import dataclass

from cascade_memory.assembly import settings as settings_of
from cascade_memory.assembly.assembling import assemble, in_ram
from cascade_memory.assembly.place import Place, place_of
from cascade_memory.assembly.settings import Settings
from cascade_memory.domain.waiting import patience, seconds_left
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import InvalidInput, StoreBusy, StoreError

_STUCK = 1.0  # seconds that closing may wait, if another process has already been writing for too long


@dataclass(frozen=True, slots=True)
class _Opened:
    """An engine and its handles. The references are weak: a notebook cell that is run twice leaves a handle unclosed."""

    engine: Engine
    settings: Settings
    holders: weakref.WeakSet[object]


_open: dict[str, _Opened] = {}
_locks: weakref.WeakValueDictionary[str, threading.RLock] = weakref.WeakValueDictionary()
_asking = threading.RLock()  # a signal handler or a finalizer may close a memory while its thread holds this


def acquire(path: str | os.PathLike[str] | None, settings: Settings, holder: object) -> Engine:
    """Return the engine of a place for the handle ``holder``; open it if necessary. Without a path, make a new one in RAM."""
    settings_of.check(settings)
    if path is None:
        if settings.chroma is not None:
            raise InvalidInput("chroma= needs a path: a memory in RAM does not use Chroma")
        return in_ram(settings)
    place = place_of(path)
    key = place.key
    with _lock_of(key):
        known = _open.get(key)
        if known is not None and not _is_usable(known, settings):
            _close(key)
            known = None
        if known is None:
            known = _opened(key, place, settings)
        else:
            settings_of.check_same(known.settings, settings, str(place))
        known.holders.add(holder)
        return known.engine


def _lock_of(key: str) -> threading.RLock:
    """Return the lock of a place. Whoever opens or closes one place, however long it takes, delays nobody at another place."""
    with _asking:
        return _locks.setdefault(key, threading.RLock())  # it disappears as soon as no thread holds it or waits for it


def _opened(key: str, place: Place, settings: Settings) -> _Opened:
    made: list[Engine] = []
    try:
        assemble(place, settings, made)
        known = _open[key] = _Opened(made[0], settings, weakref.WeakSet())
    except BaseException:
        if made and key not in _open:  # an interrupt has come when it was open already
            made[0].close(feed=False)
        raise
    return known


def is_open(path: str | os.PathLike[str]) -> bool:
    """Say whether this process has the place open."""
    return place_of(path).key in _open


def release(engine: Engine, holder: object) -> None:
    """Release a handle; the last one closes the engine."""
    found = next(((key, known) for key, known in list(_open.items()) if known.engine is engine), None)
    if found is None:  # in RAM, or another thread has closed it already
        engine.close()
        return
    key, known = found
    waits = seconds_left()
    if len(known.holders) == 1:
        try:  # wait without the lock, so that another thread can still get this engine meanwhile: then it is not closed
            engine.recording.wait_for()
        except StoreBusy:
            waits = _STUCK
    with _lock_of(key), patience(waits):
        known.holders.discard(holder)
        if not known.holders and _open.get(key) is known:
            _close(key)


def _is_usable(known: _Opened, settings: Settings) -> bool:
    """Say whether a new handle may share an engine: not if it is closed or lost, or has other settings and no handle left."""
    unused = not (known.holders or settings_of.same(known.settings, settings))
    return not (unused or known.engine.closed or _is_lost(known.engine))


def _is_lost(engine: Engine) -> bool:
    """Say whether the folder of an engine was replaced or deleted; a new handle must then open what is at its path now."""
    try:
        engine.parts.ledger.check()
    except StoreError:
        return True
    return False


def _close(key: str) -> None:
    known = _open[key]
    known.engine.close()
    if _open.get(key) is known:  # a signal handler may have closed it, and opened it anew, meanwhile
        del _open[key]  # only now: if closing is interrupted, whoever closes or opens the place next goes on with it


@atexit.register
def _close_all() -> None:
    """At the end of the process, save what was learned and close Chroma cleanly, but do not feed it the remaining cases."""
    for known in list(_open.values()):
        known.engine.close(feed=False)


def _forget_after_fork() -> None:
    globals()["_asking"] = threading.RLock()  # a thread of the parent may have held the old ones
    _locks.clear()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
