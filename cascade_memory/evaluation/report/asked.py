"""Leaves out tasks that a human answered, so that no method gets credit for what a human solved."""

from __future__ import annotations

import numpy as np

from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.section import Section, bits

_PER_TASK = ("success", "shown", "fitting", "covered", "alone", "asked")
NOTE = " With a human: of the tasks that the method attempted itself; those that the human answered are left out."


def helped(section: Section, method: str) -> bool:
    """Say whether a human helped a method."""
    return any(row["method"] in HUMAN for row in section.of_method(method))


def note(section: Section) -> str:
    """Return the note below the figures of a section; it is empty if no human was asked."""
    return NOTE if any(row.get("asked") for row in section.rows.values()) else ""


def unasked(row: Row, other: Row) -> Row:
    """Reduce a row to the tasks about which no human was asked, neither in this row nor in the other.

    >>> left = unasked({"n": 4, "rate": 0.5, "success": "0110"}, {"n": 4, "asked": "0010"})
    >>> left["n"], left["success"], round(left["rate"], 2)
    (3, '010', 0.33)
    """
    found = [asked for one in (row, other) if one["n"] == row["n"] and (asked := bits(one, "asked")) is not None]
    success = bits(row, "success")
    if not found or success is None:
        return row
    left = np.flatnonzero(~np.any(found, axis=0))
    texts = {name: "".join(row[name][place] for place in left) for name in _PER_TASK if bits(row, name) is not None}
    rest = {name: value for name, value in row.items() if name != "rate_unasked"}
    return {**rest, **texts, "n": len(left), "rate": float(success[left].mean())}
