"""Chroma as a mirror of the cases and as a search index, and its rebuilding in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.case_index import CaseMirror
from cascade_memory.stores.chroma import unfinished
from cascade_memory.stores.folder_files import remove

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

# With "-m", a file in the working directory could replace a module. With "-c", imports use the parent's sys.path.
_PROGRAM = """
import os, sys
sys.path[:] = sys.argv[3:]
if hasattr(os, "nice"):
    os.nice(5)  # the agent has priority, from the imports on
from cascade_memory.assembly.build_mirror import main
main()
"""
_IDENTITY = "identity"  # name of a fact
# Each of Chroma's threads would keep the memory it freed: 400 MB for a ledger of 1 GB instead of 270. Only glibc reads this.
_LITTLE_MEMORY = {"MALLOC_ARENA_MAX": "1"}


class MirrorBulk:
    """Uses the mirror as the search index of one namespace; it translates the mirror's ids to case keys."""

    def __init__(self, namespace: str, mirror: CaseMirror, ledger: Ledger, covered: Callable[[], int]) -> None:
        self._namespace, self._mirror, self._ledger, self._covered = namespace, mirror, ledger, covered

    @property
    def covered(self) -> int:
        """The greatest key up to which the mirror certainly holds all cases."""
        return self._covered()

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Find the keys of the k nearest cases, approximately."""
        ids = self._mirror.nearest_ids(self._namespace, vector, k)
        return np.array(sorted(self._ledger.cases.keys_of(ids)), np.int64)


class ChildBuild:
    """A child process that fills a new mirror from the ledger, in a temporary folder beside the final one.

    It ends with its parent: its standard input is a pipe that closes when the parent ends, even if the parent is killed.
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
            encoding="ascii",  # it says a number and a digest
            env={**_LITTLE_MEMORY, **os.environ},
        )

    def poll(self) -> int | None:
        """Return the exit status of the process, or None while it runs."""
        return self._process.poll()

    def finish(self) -> tuple[int, str]:
        """Move the finished mirror to its final place; return its greatest case key and its seal (see ``CaseMirror.seal``)."""
        assert self._process.stdout is not None
        with self._process:
            key, seal = self._process.stdout.read().split()
        remove(self._target)
        self._unfinished.rename(self._target)
        return int(key), seal

    def abandon(self) -> None:
        """Kill the process and remove its files."""
        with self._process:
            self._process.kill()
        remove(self._unfinished)


def identity(ledger: Ledger) -> str | None:
    """Return the id of this memory's collections on a Chroma server; None if the ledger has none and is read-only."""
    known = ledger.facts.get(_IDENTITY)
    if known is None and not ledger.read_only:
        ledger.facts.set(_IDENTITY, uuid.uuid4().hex[:12])
        known = ledger.facts.get(_IDENTITY)  # another worker may have stored one at the same time
    return known
