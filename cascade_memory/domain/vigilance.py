"""Actors who lie: which measures protect a memory against them.

The measures concern only cases and outcomes whose actor the host names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vigilance:
    """The measures that are in force; by default all.

    Args:
        records: Keep a record of each actor from what others report about its cases, and stop showing the cases of an actor
            whose record is bad beyond doubt.
        probation: While the cases of newcomers fail, show the cases of all actors without a good record seldom.
        reports: Do not learn from the outcomes of an actor who reports the opposite of what happened.
        fair_lessons: Learn no more than a fair share from an actor without a good record.

    >>> Vigilance(probation=False)
    Vigilance(records=True, probation=False, reports=True, fair_lessons=True)
    """

    records: bool = True
    probation: bool = True
    reports: bool = True
    fair_lessons: bool = True

    def __bool__(self) -> bool:
        """Whether any measure is in force."""
        return self.records or self.probation or self.reports or self.fair_lessons


OFF = Vigilance(records=False, probation=False, reports=False, fair_lessons=False)
