"""Step 4, reward: derives labels for all recalled candidates from an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ports.encoders import SolutionMatcher

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger


def hindsight(
    episode: Unsettled, verified: Solution, *, solution_key: str, ledger: Ledger, matcher: SolutionMatcher
) -> dict[int, NDArray[np.float32]]:
    """Compute, for each recall, how far every candidate's stored solution agrees with the verified one.

    With hindsight, a success gives a label to each candidate instead of only to those that were shown. The agreement of a
    forgotten solution is unknown (nan). ``solution_key`` is the key of the verified solution, as cases store it.
    """
    groups: dict[int, list[int]] = {recall: of_recall.tolist() for recall, of_recall in episode.groups.items()}
    distinct = sorted({group for of_recall in groups.values() for group in of_recall})
    by_key = getattr(matcher, "by_key", None)
    if by_key is None:
        stored = ledger.cases.solutions(distinct)
        judged = matcher.agreement(verified, list(stored.values()))
        agreement: Mapping[int, float] = dict(zip(stored, judged, strict=True))
    else:  # the stored keys are enough to compare; reading the texts could take long
        known = ledger.cases.told_apart(distinct) if episode.kinds is None else episode.kinds
        agreement = {group: by_key(verified, kind, equal=one == solution_key) for group, (one, kind) in known.items()}
    return {
        recall: np.array([agreement.get(group, np.nan) for group in of_recall], np.float32)
        for recall, of_recall in groups.items()
        if of_recall
    }
