"""Numbers on a command line."""

from __future__ import annotations

import argparse

from cascade_memory.domain.validation import GREATEST


def share(text: str) -> float:
    """Read a number from 0 to 1.

    >>> share("0.25")
    0.25
    """
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, not {text}")
    return number


def positive(text: str) -> int:
    """Read a whole number from 1 on.

    >>> positive("3")
    3
    """
    number = int(text)
    if not 1 <= number <= GREATEST:
        raise argparse.ArgumentTypeError(f"must be 1 or more, and at most {GREATEST:,}")
    return number
