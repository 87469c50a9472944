"""Chroma as mirror and as bulk index, and its rebuilding in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.case_mirror import CaseMirror
from cascade_memory.ports.ledger import Ledger
from cascade_memory.stores.chroma import unfinished
from cascade_memory.stores.folder_files import remove

# With "-m" a file in whoever's working directory could take the place of a module; like this, imports are the parent's.
_PROGRAM = """
import os, sys
sys.path[:] = sys.argv[3:]
if hasattr(os, "nice"):
    os.nice(5)  # the agent comes first, from the imports on
from cascade_memory.assembly.build_mirror import main
main()
"""
# Each of Chroma's many threads would keep what it freed: 400 MB for a ledger of 1 GB, not 270 (glibc; others do not read this).
_LITTLE_MEMORY = {"MALLOC_ARENA_MAX": "1"}


class MirrorBulk:
    """The mirror as the bulk index of one namespace: asked for ids, answers with case keys."""

    def __init__(self, namespace: str, mirror: CaseMirror, ledger: Ledger, covered: Callable[[], int]) -> None:
        self._namespace, self._mirror, self._ledger, self._covered = namespace, mirror, ledger, covered

    @property
    def covered(self) -> int:
        """The greatest key that the mirror holds for sure."""
        return self._covered()

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return the keys of about the k nearest."""
        ids = self._mirror.nearest_ids(self._namespace, vector, k)
        return np.array(sorted(self._ledger.cases.keys_of(ids)), np.int64)


class ChildBuild:
    """A child process that feeds a new mirror from the ledger, in a folder beside the place where it will stand.

    It dies with its parent: its standard input is a pipe that closes when the parent is gone, however it went.
    """

    def __init__(self, ledger: Path, target: Path) -> None:
        self._target = target
        self._unfinished = unfinished(target)
        remove(self._unfinished)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(ledger), str(self._unfinished), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**_LITTLE_MEMORY, **os.environ},
        )

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._process.poll()

    def finish(self) -> tuple[int, str]:
        """Put the finished mirror in place; return the greatest case key it holds, and its seal."""
        assert self._process.stdout is not None
        with self._process:
            key, seal = self._process.stdout.read().split()
        remove(self._target)
        self._unfinished.rename(self._target)
        return int(key), seal

    def abandon(self) -> None:
        """Stop it and remove what it left."""
        with self._process:
            self._process.kill()
        remove(self._unfinished)
