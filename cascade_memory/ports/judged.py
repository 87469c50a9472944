"""Episodes with a known outcome, and how their first choice was made: the input of all measurements."""

from __future__ import annotations

from dataclasses import dataclass

from cascade_memory.ports.policy import Feedback, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A settled episode.

    ``lesson`` is its first recall, together with the episode's reward. ``utility``, ``propensity``, and of the shadow
    ``shadow_places`` and ``shadow_propensity``, have one entry per candidate of this recall. ``whole`` is False if the ledger
    has dropped the candidates that were not shown, ``forgot`` is True if a candidate was forgotten since. ``showed`` is True if
    any recall of the episode showed a case. ``holdout`` is the probability with which the episode could have been held out.
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
