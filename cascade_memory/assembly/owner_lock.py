"""The lock that decides which process owns a folder."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections import deque
from pathlib import Path

from cascade_memory.domain.private_files import FILE, PLAIN, check_one_name
from cascade_memory.errors import StoreError, StoreUnwritable

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


_held: weakref.WeakSet[OwnerLock] = weakref.WeakSet()


class OwnerLock:
    """A lock by the operating system: the kernel frees it when the process dies, so no stale lock can be left behind.

    Lock libraries are not used: where the system cannot lock, they fall back to a lock file, which outlives a killed process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it is held now. Raise if the file system ignores locks."""
        if self._handle is not None:
            return True
        _held.add(self)
        files: list[int] = []  # handles that are open and not kept
        closing = map(os.close, files)
        try:
            if not self._lock_file(files):
                return False
            if self._lock_file(files):  # granted a second time: the file system ignores locks
                raise self._refusal()
            self._handle, files[:1] = files[0], []
            return True
        finally:
            deque(closing, maxlen=0)  # closes all of them in one step

    def _lock_file(self, files: list[int]) -> bool:
        """Open the file, note its handle, and lock it; return False if another process holds the lock."""
        try:
            # Before: a device may do something as soon as it is opened, and a file with a second name may be another program's.
            check_one_name(self._path, called="it")
            flags = os.O_RDWR | os.O_CREAT | PLAIN
            files.extend(map(os.open, (self._path,), (flags,), (FILE,)))  # opened and noted in one step
        except OSError as error:
            raise StoreUnwritable(f"cannot open {self._path}: {error}; check its permissions, or remove it") from error
        try:
            _lock(files[-1])
        except (BlockingIOError, PermissionError):  # Windows raises the latter
            return False
        except OSError as error:
            raise self._refusal() from error
        return True

    def _refusal(self) -> StoreError:
        return StoreError(
            f"the file system of {self._path} does not support locks, like many network shares: two processes would damage "
            "each other's files. Move the memory to a local disk"
        )

    def keep(self) -> bool:
        """Return True: the operating system never takes a lock away from its holder."""
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)


def _let_go_in_child() -> None:
    """Close inherited lock files in a forked child, which would otherwise keep the locks after the parent's end."""
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
