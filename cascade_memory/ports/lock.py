"""Who does a job that one process does for all."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Protocol


class Owning(Protocol):
    """The right to do a job that one process does for all; it is free again when its holder dies."""

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
    """Such a right that ends by itself: one who was paused may have lost it without knowing."""

    def held(self) -> AbstractContextManager[object]:
        """Refuse whatever is written to the ledger inside the block if the lease was lost."""
        ...


class Alone:
    """The lock of a job that several processes may do at the same time."""

    @classmethod
    def of(cls, job: str, namespace: int) -> Lease:
        """Return one for any job."""
        del job, namespace
        return cls()

    def try_acquire(self) -> bool:
        """Return True."""
        return True

    def keep(self) -> bool:
        """Return True."""
        return True

    def held(self) -> AbstractContextManager[object]:
        """Do nothing."""
        return contextlib.nullcontext()

    def release(self) -> None:
        """Do nothing."""
