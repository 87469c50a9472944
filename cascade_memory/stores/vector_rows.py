"""The vectors of an index: a matrix in memory while they are few, and a temporary file from then on.

From a file, a recall reads only the about forty vectors that it compares.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.products import rows_times
from cascade_memory.redaction.saying import log_of

Vectors = NDArray[np.float32]
IN_MEMORY = 160 * 2**20  # bytes of vectors that an index keeps in memory: those of 109,000 cases at 384 dimensions
_LEAST = 8  # rows that there is room for at first: 12 KiB at 384 dimensions
_GATHER = 512  # rows that are copied and multiplied at a time: 768 KiB at 384 dimensions
_CHUNK = 4_096  # rows that are read at once: 6 MiB at 384 dimensions
_SPARSE = 4  # rows that are read for each wanted one, rather than to read each one by itself
_log = log_of(__name__)


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


class VectorRows:
    """Rows of vectors, written only when added or removed: a reader that knows their number at its start needs no lock.

    >>> rows = VectorRows(2).with_rows(0, np.array([[1, 0], [0, 1]], np.float32))
    >>> rows.times(0, 2, np.array([0.5, 2], np.float32)).tolist()
    [0.5, 2.0]
    """

    def __init__(
        self, dimension: int, matrix: Vectors | None = None, file: VectorFile | None = None, *, may_move: bool = True
    ) -> None:
        self._dimension, self._file, self._may_move = dimension, file, may_move
        self._matrix = np.zeros((0, dimension), np.float32) if matrix is None else matrix

    @property
    def bytes(self) -> int:
        """How much memory the rows take."""
        return self._matrix.nbytes

    def with_rows(self, n: int, vectors: Vectors) -> VectorRows:
        """Return a ``VectorRows`` that has the first ``n`` rows of this one, followed by ``vectors``."""
        try:
            return self._in_file(n, vectors) if self._is_large(n + len(vectors)) else self._in_memory(n, vectors)
        except OSError as error:
            _log.warning("%d vectors are kept in memory, since they cannot be written to a temporary file (%s)", n, error)
            return VectorRows(self._dimension, np.concatenate([*self._chunks(n), vectors]), may_move=False)

    def rearranged(self, n: int, vectors: Vectors, order: NDArray[np.int64]) -> VectorRows:
        """Return new rows in the order ``order``, which has positions in the first ``n`` rows followed by ``vectors``."""
        if self._file is None and not self._is_large(len(order)):
            return VectorRows(self._dimension, np.concatenate([self._matrix[:n], vectors])[order], may_move=self._may_move)
        result, done = VectorRows(self._dimension, may_move=self._may_move), 0
        for start in range(0, len(order), 8 * _GATHER):
            part = order[start : start + 8 * _GATHER]
            here, new = part < n, part >= n
            some = np.empty((len(part), self._dimension), np.float32)
            some[here], some[new] = self.at(part[here]), vectors[part[new] - n]
            result, done = result.with_rows(done, some), done + len(some)
        return result

    def at(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return the rows with these numbers."""
        return self._matrix[numbers] if self._file is None else self._file.rows(numbers)

    def times(self, start: int, stop: int, vector: Vectors) -> Vectors:
        """Return the products of a vector with the rows from number ``start`` to before ``stop``."""
        if self._file is None:
            return rows_times(self._matrix[start:stop], vector)
        return _joined([rows_times(rows, vector) for rows in self._file.chunks(start, stop)])

    def times_at(self, numbers: NDArray[np.int64], vector: Vectors) -> Vectors:
        """Return the products of a vector with the rows of these numbers.

        The rows are copied and multiplied a few at a time, so that each copy is still in the processor's cache.
        """
        parts = (numbers[start : start + _GATHER] for start in range(0, len(numbers), _GATHER))
        return _joined([rows_times(self.at(part), vector) for part in parts])

    def wipe(self, numbers: NDArray[np.int64]) -> None:
        """Overwrite removed rows with zeros, since rows in memory may be moved to a file later. A late reader gets zeros."""
        if self._file is None:
            self._matrix[numbers] = 0.0
        else:
            for number in numbers.tolist():
                self._file.write(number, np.zeros((1, self._dimension), np.float32))

    def _is_large(self, n: int) -> bool:
        return self._may_move and n * 4 * self._dimension > IN_MEMORY

    def _in_memory(self, n: int, vectors: Vectors) -> VectorRows:
        stop, rows = n + len(vectors), self
        if stop > len(self._matrix):  # grow by half; the old matrix stays unchanged for its readers
            grown = np.zeros((max(stop, _LEAST, len(self._matrix) * 3 // 2), self._dimension), np.float32)
            grown[:n] = self._matrix[:n]
            rows = VectorRows(self._dimension, grown, may_move=self._may_move)
        rows._matrix[n:stop] = vectors
        return rows

    def _in_file(self, n: int, vectors: Vectors) -> VectorRows:
        rows = self
        if self._file is None:
            rows = VectorRows(self._dimension, file=VectorFile(self._dimension))
            rows._write(0, self._matrix[:n])
        rows._write(n, vectors)
        return rows

    def _write(self, start: int, vectors: Vectors) -> None:
        if self._file is not None:
            self._file.write(start, vectors)

    def _chunks(self, n: int) -> Iterator[Vectors]:
        return iter([self._matrix[:n]]) if self._file is None else self._file.chunks(0, n)


def _joined(parts: list[Vectors]) -> Vectors:
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
