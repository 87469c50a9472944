"""Arrays and solutions as SQLite values, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.trajectory import Solution, Trajectory


def pack_floats(array: NDArray[np.floating]) -> bytes:
    """Return little-endian float32 bytes.

    >>> unpack_floats(pack_floats(np.array([0.5, 1.0])))
    array([0.5, 1. ], dtype=float32)
    """
    return np.ascontiguousarray(array, "<f4").tobytes()


def unpack_floats(blob: bytes, columns: int | None = None) -> NDArray[np.float32]:
    """Read ``pack_floats``; with ``columns``, as a matrix."""
    array = np.frombuffer(blob, "<f4").astype(np.float32)
    return array if columns is None else array.reshape(-1, columns)


def pack_ints(array: NDArray[np.integer]) -> bytes:
    """Return little-endian int64 bytes."""
    return np.ascontiguousarray(array, "<i8").tobytes()


def unpack_ints(blob: bytes) -> NDArray[np.int64]:
    """Read ``pack_ints``."""
    return np.frombuffer(blob, "<i8").astype(np.int64)


def pack_solution(solution: Solution | None) -> tuple[str | None, str | None]:
    """Return (kind, text)."""
    if solution is None:
        return None, None
    if isinstance(solution, Trajectory):
        return "trajectory", solution.to_json()
    return "text", solution


def pack_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON.

    >>> pack_metadata({"user": "Zoë"})
    '{"user": "Zoë"}'
    """
    return json.dumps(dict(metadata), ensure_ascii=False)


def unpack_solution(kind: str | None, text: str | None) -> Solution | None:
    """Read ``pack_solution``.

    >>> unpack_solution(*pack_solution("turn left"))
    'turn left'
    """
    if kind is None or text is None:
        return None
    return Trajectory.from_json(text) if kind == "trajectory" else text


def solution_of(kind: str, text: str) -> Solution:
    """Read a solution that is certainly there."""
    return cast("Solution", unpack_solution(kind, text))
