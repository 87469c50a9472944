"""Hashes of texts: equal texts have equal hashes, and nobody can find two texts with the same hash."""

from __future__ import annotations

import hashlib

from cascade_memory.domain.trajectory import Solution, solution_text


def digest(text: str) -> str:
    """Hash a text to 32 hexadecimal digits.

    >>> digest("press reset") == digest("press reset"), len(digest(""))
    (True, 32)
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def pair_key(query: str, solution: Solution) -> str:
    """Hash a query together with its solution, to recognise the same pair again."""
    return digest(f"{query}\x00{type(solution).__name__}\x00{solution_text(solution)}")
