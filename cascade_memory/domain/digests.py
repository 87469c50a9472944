"""Short names of texts: equal for equal texts, and nobody finds two that share one."""

from __future__ import annotations

import hashlib

from cascade_memory.domain.trajectory import Solution, solution_text


def digest(text: str) -> str:
    """Return 32 hexadecimal digits.

    >>> digest("press reset") == digest("press reset"), len(digest(""))
    (True, 32)
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def pair_key(query: str, solution: Solution) -> str:
    """Return what is equal for the same query with the same solution."""
    return digest(f"{query}\x00{type(solution).__name__}\x00{solution_text(solution)}")
