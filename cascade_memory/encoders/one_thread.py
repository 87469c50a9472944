"""One thread for one short calculation: more of them wait for each other, on a busy machine ten times as long as they work."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any


def calm(torch: Any, *, short: bool) -> contextlib.AbstractContextManager[None]:
    """Return ``one_thread`` for a short calculation, and for every one in a forked child.

    OpenMP's threads do not survive a fork: a child whose parent has calculated with several would wait for them for ever.
    """
    return one_thread(torch) if short or _forked else contextlib.nullcontext()


def _note_fork() -> None:
    global _forked  # noqa: PLW0603 - a fact about this process
    _forked = True


_forked = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextlib.contextmanager
def one_thread(torch: Any) -> Generator[None, None, None]:
    """Let torch work on the calling thread alone inside the block. What other threads and the host have set stays as it is.

    ``torch.set_num_threads`` would change it for all of them; OpenMP keeps the number for each thread by itself.
    """
    openmp = _openmp(torch.__file__)
    if openmp is None:
        yield
        return
    before = torch.get_num_threads()  # which also lets torch do what it does at the first call on a thread: setting it
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(before)


@functools.cache
def _openmp(torch_file: str) -> Any:
    """Return the OpenMP that torch itself works with, of several that a process may have; None where it cannot be told."""
    for library in sorted((Path(torch_file).parent / "lib").glob("libtorch_cpu.*")):
        with contextlib.suppress(OSError, AttributeError):
            found = ctypes.CDLL(str(library))  # is loaded already; looks in what it was linked with, too
            _ = found.omp_set_num_threads
            return found
    return None
