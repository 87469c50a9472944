"""Which way to compute the inverse is more stable? Sherman-Morrison against Cholesky, over many rank-one updates.

    python examples/benchmarks/posterior.py --updates 10000 --dimension 768

The features resemble those of a cross-encoder: most of their variance lies in a few directions. The two are compared with each
other, and with a solution in extended precision by iterative refinement. With ``--as-shipped``, Sherman-Morrison inverts the
matrix again every 512 updates; without it, never.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from tqdm import tqdm

from cascade_memory.bandit.linear_models import Cholesky, ShermanMorrison
from cascade_memory.ports.policy import Floats


def refined(precision: Floats, rows: Floats) -> Floats:
    """Return ``x' A^-1 x`` for each row, refined in extended precision."""
    exact, solution = precision.astype(np.longdouble), np.linalg.solve(precision, rows.T).astype(np.longdouble)
    for _ in range(3):
        left = rows.T.astype(np.longdouble) - exact @ solution
        solution = solution + np.linalg.solve(precision, left.astype(np.float64))
    return (rows.T * solution).sum(axis=0)


def main() -> None:
    """Make the updates, and compare the two after each quarter of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--regularisation", type=float, default=0.1)
    parser.add_argument("--as-shipped", action="store_true", help="let Sherman-Morrison invert again every 512 updates")
    options = parser.parse_args()
    if not options.as_shipped:
        ShermanMorrison.REFACTOR_EVERY = 2**62
    rng, d = np.random.default_rng(0), options.dimension
    basis, precision = rng.normal(size=(d, 32)), options.regularisation * np.eye(d)
    inverse, seconds = ShermanMorrison.of(precision), 0.0
    looks = {options.updates * part // 4 for part in range(1, 5)}
    print(f"{'updates':>8s}{'apart':>12s}{'Sherman-Morrison':>20s}{'Cholesky':>12s}   of the norm; ms an update / a factor")
    for update in tqdm(range(1, options.updates + 1), disable=None):
        x = basis @ rng.normal(size=32) / np.sqrt(32) + 0.1 * rng.normal(size=d)
        precision += np.outer(x, x)
        began = time.perf_counter()
        inverse = inverse.grown(x, 1.0, precision)
        seconds += time.perf_counter() - began
        if update in looks:
            rows = rng.normal(size=(32, d))
            began = time.perf_counter()
            cholesky = Cholesky.of(precision).quadratic(rows)
            factor = time.perf_counter() - began
            truth, sherman = refined(precision, rows), inverse.quadratic(rows)
            apart, first, second = (
                float(np.max(np.abs((one - other) / truth)))
                for one, other in ((sherman, cholesky), (sherman, truth), (cholesky, truth))
            )
            times = f"{1000 * seconds / update:.1f} ms / {1000 * factor:.1f} ms"
            print(f"{update:>8d}{apart:>12.1e}{first:>20.1e}{second:>12.1e}   {times}")


if __name__ == "__main__":
    main()
