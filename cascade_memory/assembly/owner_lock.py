"""Who owns a folder."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from cascade_memory.errors import StoreUnwritable


class OwnerLock:
    """A lock by the operating system (fcntl or msvcrt): the kernel frees it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(str(path), timeout=0, thread_local=False)

    def try_acquire(self) -> bool:
        """Take it if it is free; say whether it is held now."""
        if not self._lock.is_locked:
            try:
                self._lock.acquire()
            except Timeout:
                return False
            except OSError as error:
                raise StoreUnwritable(f"cannot lock {self._lock.lock_file}: {error}") from error
        return True

    def release(self) -> None:
        """Let go."""
        self._lock.release()
