"""The limits of the process of a script, which the operating system and Python's audit hook set once everything is loaded.

On Linux, a filter for system calls (seccomp) lets through what the interpreter needs to compute and to answer, and nothing
else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Sequence

# By machine: its number in the kernel's audit header, and the numbers of the calls that stay allowed: read, write, memory,
# clocks, signals' returns, locks, randomness and the end of the process. No open, socket, clone, execve, kill or close.
_ALLOWED = {
    "x86_64": (
        0xC000003E,
        (0, 1, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 35, 39, 60, 96, 131, 186, 201, 202, 219, 228, 230, 231, 271, 273,
         318, 324, 334),
    ),
    "aarch64": (
        0xC00000B7,
        (62, 63, 64, 73, 80, 93, 94, 98, 99, 101, 113, 115, 124, 128, 132, 134, 135, 139, 169, 172, 178, 214, 215, 216, 222,
         226, 233, 278, 283, 293),
    ),
}  # fmt: skip
_NO_NEW_PRIVILEGES, _SET_FILTER, _FILTER_MODE = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000  # refused with EPERM
_HARMLESS = frozenset({"compile"})  # the only audited event of reading and running a script


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def forbid_system_calls() -> bool:
    """Install a filter that allows only a few system calls; return whether it is in force.

    The filter cannot be removed, and installing it needs no privileges.
    """
    if not sys.platform.startswith("linux") or os.uname().machine not in _ALLOWED or sys.maxsize < 1 << 32:
        return False
    machine, allowed = _ALLOWED[os.uname().machine]
    checks = [_Instruction(_JUMP_IF_EQUAL, len(allowed) - place, 0, number) for place, number in enumerate(allowed)]
    instructions = [
        _Instruction(_LOAD, 0, 0, 4),
        _Instruction(_JUMP_IF_EQUAL, 1, 0, machine),
        _Instruction(_RETURN, 0, 0, _KILL),
        _Instruction(_LOAD, 0, 0, 0),
        *checks,
        _Instruction(_RETURN, 0, 0, _REFUSE),
        _Instruction(_RETURN, 0, 0, _ALLOW),
    ]
    program = _Program(len(instructions), (_Instruction * len(instructions))(*instructions))
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    if prctl(_NO_NEW_PRIVILEGES, 1, None, 0, 0) != 0:
        return False
    return prctl(_SET_FILTER, _FILTER_MODE, ctypes.addressof(program), 0, 0) == 0


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
