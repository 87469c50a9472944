"""Settings of PyTorch and transformers that differ inside a block only: no progress bars, and one thread.

Short calculations take one thread: on a busy machine, several threads wait for each other ten times as long as they work.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from cascade_memory.domain.interruptible import interruptible


@interruptible
def quiet_loading() -> Generator[None, None, None]:
    """Let transformers draw no progress bars inside the block; afterwards the host's setting is restored."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    try:
        logging.disable_progress_bar()
        yield
    finally:
        if bars:
            logging.enable_progress_bar()


def calm(torch: Any, *, short: bool) -> contextlib.AbstractContextManager[None]:
    """Return ``one_thread`` for a short calculation, and for any in a forked child; otherwise a block that changes nothing.

    The threads of OpenMP do not survive a fork: if the parent process has calculated with several threads, the child would wait
    for them forever.
    """
    return one_thread(torch) if short or _forked else contextlib.nullcontext()


def _note_fork() -> None:
    global _forked  # noqa: PLW0603 - it belongs to the process
    _forked = True


_forked = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@interruptible
def one_thread(torch: Any) -> Generator[None, None, None]:
    """Let torch use only the calling thread inside the block. The settings of other threads and of the host stay as they are.

    ``torch.set_num_threads`` would change all of them; OpenMP has a separate number for each thread.
    """
    openmp = _openmp(torch.__file__)
    if openmp is None:
        yield
        return
    before = torch.get_num_threads()  # the first call on a thread also makes torch set the number, before we do
    try:
        openmp.omp_set_num_threads(1)
        yield
    finally:
        openmp.omp_set_num_threads(before)


@functools.cache
def _openmp(torch_file: str) -> Any:
    """Return the OpenMP library that torch uses, since a process may have several; None if it cannot be found."""
    for library in sorted((Path(torch_file).parent / "lib").glob("libtorch_cpu.*")):
        with contextlib.suppress(OSError, AttributeError):
            found = ctypes.CDLL(
                str(library)
            )  # it is loaded already; ctypes also finds the names of the libraries that it is linked with
            _ = found.omp_set_num_threads
            return found
    return None
