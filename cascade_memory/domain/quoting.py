"""Quotes a refused value in an error message, without running any code of the value."""

from __future__ import annotations

from cascade_memory.redaction.marking import cut_short

_MOST = 80  # characters of what is quoted
_LONG = 10_000  # characters: a longer text is not looked through for secrets, and so it is not quoted
_DIGITS = 40  # of a number that is quoted


def quoted(value: object) -> str:
    """Return what a message says of a value: the value itself if it is short and plain, otherwise a description of it.

    It never calls the value's own ``repr``, which may be endless, may raise, or may be too long to be shown.

    >>> quoted(-1), quoted("me"), quoted([1]), quoted(10**400)
    ('-1', "'me'", 'a list', 'a number of more than 40 digits')
    """
    if isinstance(value, str):
        text = str.__str__(value)
        return cut_short(repr(text), _MOST) if len(text) <= _LONG else f"a text of {len(text):,} characters"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        number = int.__index__(value)
        return str(number) if abs(number) < 10**_DIGITS else f"a number of more than {_DIGITS} digits"
    if isinstance(value, float):
        return repr(float.__pos__(value))
    name = type(value).__name__
    return "bytes" if isinstance(value, (bytes, bytearray)) else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
