"""An episode whose outcome is known, with how its first choice was made: what measuring is made from."""

from __future__ import annotations

from dataclasses import dataclass

from cascade_memory.ports.policy import Feedback, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A settled episode.

    ``lesson`` is its first recall with the episode's reward; ``utility``, ``propensity``, ``shadow_places`` and
    ``shadow_propensity`` have one entry per candidate. ``whole`` is False where the ledger has let go of the candidates that
    were not shown, ``forgot`` is True where a candidate has been forgotten since; ``showed`` says whether any recall of the
    episode showed a case. ``holdout`` is the probability with which the episode could have been held out.
    """

    lesson: Feedback
    arm: str
    holdout: float
    recalls: int
    showed: bool
    k: int
    forgot: bool
    encoder: str
    whole: bool
    utility: Floats
    propensity: Floats
    baseline: float
    shadow: str | None
    shadow_places: Floats
    shadow_propensity: Floats
