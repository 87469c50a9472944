"""How values look as short text. A refused value is quoted in an error message without running any code of the value."""

from __future__ import annotations

import difflib
import itertools
import math
import re
import time
from collections.abc import Collection, Mapping

from cascade_memory.redaction.marking import cut_short
from cascade_memory.visible import on_one_line

_PLURAL = re.compile(r"(?<=\w)s\b")  # of the first word that has it
_NAMED = 5  # how many namespaces a message about a mistyped one lists
_MOST = 80  # characters of what is quoted
_LONG = 10_000  # characters: a longer text is not looked through for secrets, and so it is not quoted
_DIGITS = 40  # of a number that is quoted


def number(value: float | None) -> str:
    """Format a number with three decimals, or as a dash if it is unknown.

    >>> number(0.51234), number(float("nan"))
    ('0.512', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def counted(count: int, noun: str) -> str:
    """Say how many there are, with the noun in the singular or in the plural.

    >>> counted(1, "case"), counted(1_200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def all_counted(counts: Mapping[str, int]) -> str:
    """Say how many there are of several things, which are named in the plural.

    >>> all_counted({"cases shown again": 1, "episodes": 0, "outcomes": 1_200})
    '1 case shown again, 0 episodes, 1,200 outcomes'
    """
    return ", ".join(f"{count:,} {_PLURAL.sub('', name, 1) if count == 1 else name}" for name, count in counts.items())


def shorten(text: str, width: int) -> str:
    r"""Shorten a text to one line of at most ``width`` characters.

    >>> shorten("heat   the\ncup", 8)
    'heat th…'
    """
    line = on_one_line(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def by_whom(actor: str | None, channel: str | None) -> str:
    """Say who did something, and through which channel.

    >>> by_whom("ann", "mcp"), by_whom(None, "python"), by_whom(None, None)
    ('ann (mcp)', 'nobody named (python)', 'nobody named')
    """
    who = "nobody named" if actor is None else on_one_line(actor)
    return who if channel is None else f"{who} ({on_one_line(channel)})"


def moment(seconds: float) -> str:
    """Format a moment as this machine's clock shows it."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def no_namespace(name: str, names: Collection[str]) -> str:
    """Build the message that there is no such namespace; it lists existing ones, the most similar names first.

    >>> print(no_namespace("defualt", ["tenant-1", "default"]))
    there is no namespace 'defualt' yet; there are 'default', 'tenant-1'
    """
    alike = difflib.get_close_matches(name, names, n=_NAMED, cutoff=0.6)
    named = [*alike, *itertools.islice((one for one in names if one not in alike), _NAMED - len(alike))]
    more = f" and {len(names) - len(named):,} more" if len(names) > len(named) else ""
    verb = "are" if len(named) > 1 else "is only" if named else "is none at all"
    there = f"there {verb} {', '.join(map(repr, named))}{more}".rstrip()
    return f"there is no namespace {name!r} yet; {there}"


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
