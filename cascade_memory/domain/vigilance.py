"""Actors who lie: which measures protect a memory against them, and what the memory then knows of an actor.

The measures concern only cases and outcomes whose actor the host names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cascade_memory.visible import shown_visibly


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


Standing: TypeAlias = Literal["established", "new", "doubted", "liar", "quarantined", "released"]
WHY: Mapping[str, str] = {
    "established": "others have done well with its cases",
    "new": "it has no record yet",
    "doubted": "its cases have failed others",
    "liar": "its reports contradict what happened to others: they do not teach",
    "quarantined": "its cases are in quarantine",
    "released": "a person has released it",
}


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class ActorStanding:
    """One actor in one namespace.

    ``cases`` and ``reports`` are the log odds that its cases, and its reports, are bad: 0 without a record, the less the
    better. ``share`` is the share of recalls in which its cases may be shown.
    """

    actor: str
    standing: Standing
    cases: float
    reports: float
    share: float

    @property
    def why(self) -> str:
        """What the standing means, in words."""
        return WHY[self.standing]

    @property
    def alarming(self) -> bool:
        """Whether a person should look at this actor."""
        return self.standing in ("quarantined", "liar")
