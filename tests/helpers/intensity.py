"""How much the tests try: how many mutations, kills, interrupts and extreme values. CASCADE_TESTS is the one setting.

"newcomer" is what README's command does, "ci" what .ci/run does, and "matrix" what .ci/matrix does, in minutes.
"""

from __future__ import annotations

import os
from typing import Literal, get_args

Level = Literal["newcomer", "ci", "matrix"]
LEVEL = os.environ.get("CASCADE_TESTS", "newcomer")
if LEVEL not in get_args(Level):
    raise ValueError(f'CASCADE_TESTS is "newcomer", "ci" or "matrix", not {LEVEL!r}')


def times(*, newcomer: int, ci: int, matrix: int) -> int:
    """Return how often something is to be tried."""
    return {"newcomer": newcomer, "ci": ci, "matrix": matrix}[LEVEL]
