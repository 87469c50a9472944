"""Locks for jobs that one process does for all processes."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Protocol


class Owning(Protocol):
    """The right to do a job that one process does for all processes; it is free again when its holder dies."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it is held now."""
        ...

    def keep(self) -> bool:
        """Return whether the lock is still held; renew it if it would end otherwise."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class Lease(Owning, Protocol):
    """An ``Owning`` that ends by itself: a holder that was paused may have lost it without noticing."""

    def held(self) -> AbstractContextManager[object]:
        """Return a block in which every write to the ledger is refused if the lease has been lost."""
        ...


class Alone:
    """A lock that everybody always gets, for a job that several processes may do at the same time."""

    @classmethod
    def of(cls, job: str, namespace: int) -> Lease:
        """Return a lock of this class, whatever the job and the namespace are."""
        del job, namespace
        return cls()

    def try_acquire(self) -> bool:
        """Return True."""
        return True

    def keep(self) -> bool:
        """Return True."""
        return True

    def held(self) -> AbstractContextManager[object]:
        """Return a block that refuses nothing."""
        return contextlib.nullcontext()

    def release(self) -> None:
        """Do nothing."""
