"""What is known of an actor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cascade_memory.visible import shown_visibly

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
