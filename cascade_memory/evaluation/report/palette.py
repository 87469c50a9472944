"""The look of each method in charts: a colour that colour-blind readers can distinguish, a dash pattern and a marker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """A method's line and marker."""

    colour: str
    dash: str
    mark: str
    strong: bool = True


INK, FAINT = "#1b1f24", "#8a9099"
# The colours on a white page, and those that replace them on a dark one.
ON_DARK = {
    INK: "#e8eaed",
    FAINT: "#9aa0a6",
    "#0072b2": "#5cb8f0",
    "#d55e00": "#ff9a52",
    "#009e73": "#3fd0a5",
    "#aa3377": "#ee8cc0",
    "#8a6d00": "#dcbb3a",
}
_LOOKS = {
    "CASCADE": Look("#0072b2", "-", "o"),
    "similarity": Look("#d55e00", "-.", "^"),
    "zero-shot": Look(INK, "--", "X"),
    "random": Look("#8a6d00", ":", "v"),
    "CASCADE, always a case": Look("#009e73", "-", "s"),
    "Neural-LinLogUCB": Look("#aa3377", "--", "D"),
}
_WEAK = Look(FAINT, "-", ".", strong=False)


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """Assign a look to each method: known methods always have the same, others get the unused ones of six, the rest is grey.

    >>> looks(["mine", "similarity"])["mine"].colour
    '#0072b2'
    """
    taken = {method: _LOOKS[method] for method in methods if method in _LOOKS}
    free = [look for name, look in _LOOKS.items() if name not in taken]
    others = iter(free)
    return {method: taken.get(method) or next(others, _WEAK) for method in methods}


def strong(methods: Sequence[str]) -> list[str]:
    """Return the methods that are not grey."""
    return [method for method, look in looks(methods).items() if look.strong]


def legend(methods: Sequence[str]) -> dict[str, Look]:
    """Return the entries of a legend; all grey methods have one common entry."""
    look = looks(methods)
    grey = {"others, see the tables": _WEAK} if _WEAK in look.values() else {}
    return {**{method: look[method] for method in strong(methods)}, **grey}
