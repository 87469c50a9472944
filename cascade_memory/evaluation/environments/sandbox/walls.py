"""The limits that the operating system and Python's audit hook set to the process of a script, once everything is loaded."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from cascade_memory.evaluation.environments.sandbox.system_calls import forbid_system_calls

_HARMLESS = frozenset({"compile"})  # the only audited event of reading and running a script


def raise_walls(*, seconds: float, megabytes: int) -> list[str]:
    """Set every limit that this system has; return the names of those in force. None of them can be taken back."""
    with contextlib.suppress(OSError):
        os.closerange(3, 4096)
    standing = [*_resources(int(seconds) + 1, megabytes << 20)]
    if forbid_system_calls():
        standing.append("system calls")
    sys.addaudithook(_refuse)
    return [*standing, "audit"]


def _resources(seconds: int, memory: int) -> Sequence[str]:
    try:
        import resource
    except ImportError:  # Windows
        return []
    wanted = (
        *(("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_FSIZE", 0), ("RLIMIT_NPROC", 0), ("RLIMIT_CORE", 0)),
        ("RLIMIT_NOFILE", 3),  # input, output and errors are open already
    )
    standing: list[str] = []
    for name, limit in wanted:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (limit, limit))
            standing.append(name)
    return standing


def _refuse(event: str, _: object) -> None:
    if event not in _HARMLESS:
        raise RuntimeError(f"{event} is not allowed here")
