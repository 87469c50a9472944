"""Lines that fence a text in a prompt: the text itself cannot contain them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def fence_mark(stored: Sequence[str], shown: Sequence[str]) -> str:
    """Return a word that is in none of the texts, stored or shown; equal texts always give the same word, for caching.

    >>> fence_mark(["pull the tray"], ["pull the tray"])
    'memory-164eaa361a'
    """
    text = "\x00".join(stored)
    salt = 0
    while True:
        mark = "memory-" + hashlib.blake2b(f"{salt}\x00{text}".encode(), digest_size=5).hexdigest()
        if mark not in text and not any(mark in one for one in shown):
            return mark
        salt += 1
