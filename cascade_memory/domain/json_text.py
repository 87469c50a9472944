"""Parses JSON that may come from anywhere."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: object) -> Any:
    """Parse a text; None if it is not JSON, is nested too deeply, or is no text at all.

    Compare what it returns with the types that are wanted: a number may be infinite, or greater than any other.

    >>> parsed('["hashing", 8]'), parsed("[" * 50_000), parsed(b"?")
    (['hashing', 8], None, None)
    """
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
