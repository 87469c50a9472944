"""Chroma writes uninitialised memory into the unused part of its index files. Here that memory is set to zeros."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Generator

from cascade_memory.domain.interruptible import interruptible

_M_PERTURB = -6  # an option of glibc: fill allocated memory with the complement of a byte
_ZEROS = 0xFF
_lock = threading.Lock()
_inside: set[object] = set()  # the blocks


@interruptible
def zeroed_allocations() -> Generator[None, None, None]:
    """Fill all memory that is allocated inside the block with zeros, if the C library can do that.

    Freed memory may still hold anything that this process has ever read, such as purged texts and vectors: these were seen in
    Chroma's ``data_level0.bin`` and ``length.bin`` after about one purge in four. With C libraries other than glibc this does
    nothing; most of them return zeros for large blocks anyway.
    """
    mine = object()
    try:
        with _lock:
            _inside.add(mine)
            _perturb(_ZEROS)
        yield
    finally:
        _inside.discard(mine)
        with _lock:
            if not _inside:
                _perturb(0)


def _perturb(byte: int) -> None:
    if platform.libc_ver()[0] == "glibc":
        _libc().mallopt(_M_PERTURB, byte)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
