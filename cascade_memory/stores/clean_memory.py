"""Chroma writes memory that it did not initialise into the unused part of its index files. Here that memory is made zeros."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import threading
from collections.abc import Generator

_M_PERTURB = -6  # glibc: fill what is allocated with the complement of a byte
_ZEROS = 0xFF
_lock = threading.Lock()
_inside = 0


@contextlib.contextmanager
def zeroed_allocations() -> Generator[None, None, None]:
    """Let everything that is allocated meanwhile be zeros, where the C library can do that.

    What has been freed may be anything this process has ever held: after a purge, texts and vectors that were purged (seen in
    Chroma's ``data_level0.bin`` and ``length.bin``, about once in four purges). With other C libraries than glibc this does
    nothing; most of them return zeros for large blocks anyway.
    """
    global _inside  # noqa: PLW0603 - the setting is the process's
    with _lock:
        _inside += 1
        if _inside == 1:
            _perturb(_ZEROS)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _perturb(0)


def _perturb(byte: int) -> None:
    if platform.libc_ver()[0] == "glibc":
        _libc().mallopt(_M_PERTURB, byte)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
