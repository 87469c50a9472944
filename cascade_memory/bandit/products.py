"""Matrix products that stay on the calling thread.

numpy computes every larger product on BLAS threads. These get in the way of PyTorch's own threads, which wait by spinning: on
two cores, embedding a query after one such product took ten times as long (docs/decisions). So products are cut into tiles
that are too small for OpenBLAS to use threads; on one core this costs next to nothing.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

_VECTOR_TILE = 8_000  # entries of a matrix that is multiplied by a vector; OpenBLAS uses threads from 9,216 on
_MATRIX_TILE = 200_000  # multiplications in a product of two matrices; OpenBLAS uses threads from 262,144 on
_ROWS = 16  # of a tile; with 4, BLAS is up to four times slower, and with more, the tiles have too few columns
_BLOCK = 48


def rows_times(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute ``matrix @ vector``.

    >>> rows_times(np.eye(3, dtype=np.float32), np.array([1, 2, 3], np.float32))
    array([1., 2., 3.], dtype=float32)
    """
    n, d = matrix.shape
    tile = max(1, _VECTOR_TILE // max(d, 1))
    whole = n // tile * tile
    result = np.empty(n, np.float32)
    if whole:
        np.matmul(matrix[:whole].reshape(-1, tile, d), vector, out=result[:whole].reshape(-1, tile))
    if whole < n:
        result[whole:] = matrix[whole:] @ vector
    return result


def product(a: Floats, b: Floats) -> Floats:
    """Compute ``a @ b``.

    >>> bool(np.allclose(product(np.ones((70, 90)), np.ones((90, 110))), 90.0))
    True
    """
    (m, k), n = a.shape, b.shape[1]
    if m * k * n <= (_VECTOR_TILE if m == 1 else _MATRIX_TILE):
        return a @ b
    high = max(2, math.ceil(m / math.ceil(m / _ROWS)))  # few rows are added; with one row, each tile would be a vector
    columns = max(1, _MATRIX_TILE // (high * k))
    while n % columns == 1 and columns > 1:  # so would the last tile, with one column
        columns -= 1
    padded = -m % high
    rows = np.vstack([a, np.zeros((padded, k), a.dtype)]) if padded else np.ascontiguousarray(a)
    tiles = rows.reshape(-1, high, k)
    result = np.empty((m + padded, n), np.result_type(a, b))
    for start in range(0, n, columns):
        part = np.matmul(tiles, b[:, start : start + columns])
        result[:, start : start + columns] = part.reshape(m + padded, -1)
    return result[:m]


def inverse_cholesky(matrix: Floats) -> Floats:
    """Compute the lower triangular X with ``X matrix X' = I``, block by block.

    >>> x = inverse_cholesky(np.diag([4.0, 1.0]))
    >>> x.tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    n = len(matrix)
    edges = [*range(0, n, _BLOCK), n]
    blocks = [slice(a, b) for a, b in itertools.pairwise(edges)]
    factor, inverse = np.zeros((n, n)), np.zeros((n, n))
    for j, column in enumerate(blocks):
        for row in blocks[j:]:
            rest = np.asarray(matrix[row, column], np.float64).copy()
            for before in blocks[:j]:
                rest -= factor[row, before] @ factor[column, before].T
            if row is column:
                factor[row, column] = np.linalg.cholesky(rest)
                inverse[row, column] = np.linalg.inv(factor[row, column])
            else:
                factor[row, column] = rest @ inverse[column, column].T
    for i, row in enumerate(blocks):
        for j, column in enumerate(blocks[:i]):
            total = sum(factor[row, between] @ inverse[between, column] for between in blocks[j:i])
            inverse[row, column] = -inverse[row, row] @ total
    return inverse
