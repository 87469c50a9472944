"""Numbers on a command line."""

from __future__ import annotations

import argparse


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
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number
