"""Many vectors in a temporary file instead of in memory: a recall reads only the about forty that it compares."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
_CHUNK = 4_096  # rows that are read at once: 6 MiB at 384 dimensions
_SPARSE = 4  # rows that are read for each wanted one, rather than to read each one by itself


class VectorFile:
    """A matrix on disk, whose rows are read by number. The file has no name: it is gone when the process ends, even if killed.

    >>> file = VectorFile(2)
    >>> file.write(0, np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    >>> file.rows(np.array([2, 0])).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._width = 4 * dimension
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it stays open
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()  # over the position in the file

    def write(self, start: int, vectors: Vectors) -> None:
        """Write rows, beginning at row number ``start``. Raises ``OSError`` if the disk is full."""
        rest = _bytes(np.ascontiguousarray(vectors, np.float32))
        with self._lock:
            self._file.seek(start * self._width)
            while rest:
                rest = rest[self._file.write(rest) :]

    def between(self, start: int, stop: int) -> Vectors:
        """Return the rows from number ``start`` to before ``stop``; zeros for those that were never written."""
        found = np.zeros((stop - start, self.dimension), np.float32)
        rest = _bytes(found)
        with self._lock:
            self._file.seek(start * self._width)
            while rest and (n := self._file.readinto(rest)):
                rest = rest[n:]
        return found

    def rows(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return the rows with these numbers, in the order in which the numbers are given."""
        if not len(numbers):
            return np.zeros((0, self.dimension), np.float32)
        first, last = int(numbers.min()), int(numbers.max()) + 1
        if last - first <= _SPARSE * len(numbers):
            return self.between(first, last)[numbers - first]
        return np.concatenate([self.between(number, number + 1) for number in numbers.tolist()])

    def chunks(self, start: int, stop: int) -> Iterator[Vectors]:
        """Yield the rows from number ``start`` to before ``stop``, some at a time."""
        for place in range(start, stop, _CHUNK):
            yield self.between(place, min(place + _CHUNK, stop))


def _bytes(vectors: Vectors) -> memoryview:
    return vectors.reshape(-1).view(np.uint8).data
